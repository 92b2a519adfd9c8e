//! `teddy export DIR`: writes the turns of a session to directories.
//!
//! A session can come from an untrusted source. Entries of a turn other than its known files are
//! reported and not written: they could contain a git repository, which git would then use.

use std::path::Path;
use std::process::ExitCode;

use super::elsewhere;
use crate::cli::app::App;
use crate::cli::exit;
use crate::cli::failure::InvalidArgument;
use crate::host::file::{OutputDir, Root};
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::counted;
use crate::text::sanitize::{excerpt, sanitize_line};
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;

/// Characters shown of a name that was not written.
const MAX_EXCERPT: usize = 200;

pub(super) fn export_dir(names: &[String], app: &App) -> anyhow::Result<ExitCode> {
    if names.len() > 1 {
        let message = "the turns of a session are written to one directory".to_owned();
        let hint = "`--bundle <file>` and `--html <directory>` take several sessions".to_owned();
        return Err(InvalidArgument { message, hint }.into());
    }

    let project = app.record()?;
    let session = project.session()?;
    let here = app.dir()?;
    let name = names.first().map_or(session.as_str(), String::as_str);
    let target = here.join(name);
    if names.is_empty() {
        check_reachable(&here, name)?;
    }
    if !target.is_dir() && is_another_session(&project, &session, name) {
        let name = sanitize_line(name);
        return Err(InvalidArgument {
            message: format!("`{name}` is a session, and its turns need a directory"),
            hint: format!(
                "`teddy -s {name} export` exports it; `teddy export ./{name}` makes a directory for \
                 session `{session}`"
            ),
        }
        .into());
    }

    let turns: Vec<_> = project
        .store()
        .history(project.store().tip(&session)?)
        .collect::<anyhow::Result<_>>()?;

    let mut dir = OutputDir::begin(&target, None).map_err(elsewhere)?;
    let left_out = write_turns(&project, &turns, &mut dir)?;
    dir.finish().map_err(elsewhere)?;

    if let [first, ..] = left_out.as_slice() {
        let first = sanitize_line(first);
        app.warn(&format!(
            "left out {} that a turn of TeDDy cannot have, such as `{}`",
            counted(left_out.len(), "file"),
            excerpt(&first, MAX_EXCERPT)
        ));
    }
    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": target, "turns": turns.len() }))?;
    } else {
        app.print(format!("{name}\n"))?;
    }

    Ok(exit::SUCCESS.into())
}

/// Returns whether a word names another session than the exported one.
fn is_another_session(project: &Project, session: &SessionName, word: &str) -> bool {
    let name = SessionName::from_address(word);
    name.is_ok_and(|name| name != *session && project.store().tip_id(&name).is_ok())
}

/// Checks that the default directory is below the current one. In an untrusted project, a link
/// could lead elsewhere.
fn check_reachable(here: &Path, name: &str) -> anyhow::Result<()> {
    let kind = Root::open(here)?.kind(Path::new(name));
    kind.map_err(|error| error_with_hint(error.to_string(), "name another directory"))?;
    Ok(())
}

/// Writes the files of turns, newest first, and returns the omitted ones.
fn write_turns(
    project: &Project,
    turns: &[Turn],
    dir: &mut OutputDir,
) -> anyhow::Result<Vec<String>> {
    let width = turns
        .first()
        .map_or(2, |tip| tip.number().to_string().len().max(2));
    let mut left_out = Vec::new();

    for turn in turns {
        for (name, bytes) in project.repository.files(turn.tree)? {
            let path = format!("{:0width$}/{name}", turn.number());
            if artifact::is_known(&name) {
                dir.write(&path, &bytes)?;
            } else {
                left_out.push(path);
            }
        }
    }
    Ok(left_out)
}
