//! Artifacts of turns, by the names under which a context list has them.

use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::resource::Artifact;
use crate::workflow::project::Project;

/// Returns an artifact of a turn, by the name under which a context list has it.
///
/// # Errors
/// Where the repository cannot be read.
pub fn artifact(
    project: &Project,
    tip: &Turn,
    wanted: &Artifact,
) -> anyhow::Result<Option<Vec<u8>>> {
    match turn_of(project, tip, wanted)? {
        Some(turn) => project.repository.file(turn.tree, &wanted.name),
        None => Ok(None),
    }
}

/// Returns the turn whose artifact a context list names.
///
/// # Errors
/// Where the repository cannot be read.
pub fn turn_of(project: &Project, tip: &Turn, wanted: &Artifact) -> anyhow::Result<Option<Turn>> {
    let Ok(session) = SessionName::from_ref(&wanted.session) else {
        return Ok(None);
    };
    // A branch has the turns of the session that it comes from in its own chain.
    let own = project
        .store()
        .turn(&tip.session, &wanted.turn.to_string())
        .ok();
    Ok(match own {
        Some(turn)
            if session == tip.session || turn.recorded_session(&project.repository)? == session =>
        {
            Some(turn)
        }
        _ => project
            .store()
            .turn(&session, &wanted.turn.to_string())
            .ok(),
    })
}
