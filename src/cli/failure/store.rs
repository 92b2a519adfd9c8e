//! Judges what is wrong with the object store.

use std::error::Error;
use std::path::Path;

use super::Diagnosis;
use crate::cli::kind::FailureKind;
use crate::git::keep::store_access::{ReadExtent, UnreadableStore, ensure_readable};
use crate::git::object::absent::MissingObject;
use crate::git::repository::Repository;

/// Judges an object that is missing or cannot be read.
pub(super) fn classify_store(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    let missing = cause.downcast_ref().map(MissingObject::hint);
    let hint = missing.or_else(|| cause.downcast_ref().map(UnreadableStore::hint));
    hint.map(|hint| Diagnosis::of(FailureKind::Failed, Some(hint)))
}

/// Returns why an object is missing if a file that might have it cannot be read.
pub(in crate::cli) fn unreadable_rather_than_missing(
    error: anyhow::Error,
    dir: Option<&Path>,
) -> anyhow::Error {
    if !error.chain().any(|cause| cause.is::<MissingObject>()) {
        return error;
    }
    let repository = dir.and_then(|dir| Repository::discover_record(dir, None).ok());
    match repository.map(|repository| ensure_readable(&repository, ReadExtent::Start)) {
        Some(Err(unreadable)) => unreadable,
        _ => error,
    }
}
