//! Resolves artifacts that a context list names.

use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::resource::Artifact;
use crate::workflow::project::Project;

/// Returns the content of an artifact.
pub fn read_artifact(
    project: &Project,
    tip: &Turn,
    artifact: &Artifact,
) -> anyhow::Result<Option<Vec<u8>>> {
    match find_artifact_turn(project, tip, artifact)? {
        Some(turn) => project.repository.file(turn.tree, &artifact.name),
        None => Ok(None),
    }
}

/// Returns the turn of an artifact. `None` if it does not exist any more.
pub fn find_artifact_turn(
    project: &Project,
    tip: &Turn,
    artifact: &Artifact,
) -> anyhow::Result<Option<Turn>> {
    let Ok(session) = SessionName::from_ref(&artifact.session) else {
        return Ok(None);
    };
    // A branch shares the turns of the session that it came from, so its own chain can contain the
    // turn. That session might be deleted.
    let own = project
        .store()
        .turn(&tip.session, &artifact.turn.to_string())
        .ok();
    Ok(match own {
        Some(turn)
            if session == tip.session || turn.recorded_session(&project.repository)? == session =>
        {
            Some(turn)
        }
        _ => project
            .store()
            .turn(&session, &artifact.turn.to_string())
            .ok(),
    })
}
