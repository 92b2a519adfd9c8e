//! What the answers used that no step of a change took.
//!
//! Kept next to the change and not in it, because a change begins with its first usable answer.

use std::io::ErrorKind;

use anyhow::Context as _;

use super::change_dir;
use crate::change::id::ChangeId;
use crate::change::state::StepUsage;
use crate::host::file::{read_regular_text, write_atomic};
use crate::project::Project;

const FILE: &str = "discarded.yaml";
/// In bytes.
const MAX_FILE: u64 = 4096;

/// The sum of all of them. Its model is that of the last one.
pub fn read(project: &Project, id: &ChangeId) -> anyhow::Result<StepUsage> {
    let path = change_dir(project, id).join(FILE);
    let text = match read_regular_text(&path, MAX_FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(StepUsage::default()),
        text => text?,
    };
    serde_yaml::from_str(&text).with_context(|| format!("reading `{}`", path.display()))
}

/// The caller holds the lock of the change.
pub(super) fn add(project: &Project, id: &ChangeId, usage: &StepUsage) -> anyhow::Result<()> {
    let mut sum = read(project, id)?;
    sum.add(usage);
    let text = serde_yaml::to_string(&sum)?;
    write_atomic(&change_dir(project, id).join(FILE), text.as_bytes())?;
    Ok(())
}
