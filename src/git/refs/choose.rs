//! Selects the ref store of a repository.

use std::path::Path;

use super::files::FileRefs;
use super::reftable::Reftable;
use super::store::RefStore;

/// Returns the store that `extensions.refStorage` selects, or the name of an unknown format as the
/// error.
pub(in crate::git) fn of(
    gix: &gix::Repository,
    common: &Path,
) -> Result<Box<dyn RefStore + Send>, String> {
    let format = gix.config_snapshot().string("extensions.refStorage");
    let (gix, common) = (gix.clone(), common.to_owned());
    match format.map(|format| format.to_string()).as_deref() {
        None | Some("files") => Ok(Box::new(FileRefs::of(gix, common))),
        Some("reftable") => Ok(Box::new(Reftable::of(gix, common))),
        Some(other) => Err(other.to_owned()),
    }
}
