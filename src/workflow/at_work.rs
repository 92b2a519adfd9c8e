//! What the process that holds a session's lock does, for those that read.

use crate::host::lock::{self, LockHolder};
use crate::session::name::SessionName;
use crate::workflow::project::Project;

/// The activity of a process that has a plan in review.
pub const REVIEW_ACTIVITY: &str = "execute: review";
/// The activity of a process that runs a plan.
pub const RUN_ACTIVITY: &str = "execute: run";

/// Returns the other process that is at work in a session.
pub fn active_process(project: &Project, session: &SessionName) -> Option<LockHolder> {
    lock::living_holder(&project.session_lock(session))
}

/// Says what this process, which has locked a session, does in it now.
pub fn note_activity(project: &Project, session: &SessionName, activity: &str) {
    lock::note_activity(&project.session_lock(session), activity);
}
