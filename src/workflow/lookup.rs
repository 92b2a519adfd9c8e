//! Small things that workflows look up: artifacts of turns, memos, agents, who handed over.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use crate::host::file::Root;
use crate::model::prompt::Prompts;
use crate::plan::memo;
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::transition::{Agent, Caller};
use crate::session::turn::Turn;
use crate::text::context_list;
use crate::text::resource::Artifact;
use crate::workflow::pages;
use crate::workflow::project::Project;
use crate::workflow::teddy_files::{GLOBAL, MAX_FILE, MEMOS};

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

/// Returns the memos.
///
/// # Errors
/// Where the file is no list of texts.
pub fn memos(root: &Root) -> anyhow::Result<Vec<String>> {
    match memos_text(root) {
        Some(text) => memo::file::read(&text).with_context(|| format!("reading `{MEMOS}`")),
        None => Ok(Vec::new()),
    }
}

/// Returns the text of the memos' file.
pub fn memos_text(root: &Root) -> Option<String> {
    root.read(Path::new(MEMOS), MAX_FILE)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the text of the list of every session as it is in its file, to be changed; empty
/// where there is none.
///
/// # Errors
/// Where it is there and cannot be read whole: what is written then would be all that is left
/// of it.
pub fn whole_global_context(root: &Root) -> anyhow::Result<String> {
    match root.read(Path::new(GLOBAL), MAX_FILE) {
        Ok(bytes) => String::from_utf8(bytes)
            .map_err(|_| anyhow::anyhow!("`{GLOBAL}` is not UTF-8; it is left as it is")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the text of the list of every session.
pub fn global_context(root: &Root) -> String {
    root.read(Path::new(GLOBAL), MAX_FILE)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// Returns an agent by name: the project's own prompt where it is trusted, else a built-in one.
///
/// # Errors
/// Where there is none; the message lists those that there are.
pub fn agent(project: &Project, name: &str) -> anyhow::Result<Agent> {
    let found = prompts(project).find(name)?;
    Ok(Agent {
        name: found.name,
        system_prompt: found.text,
    })
}

/// Returns the names of all agents.
pub fn agents(project: &Project) -> BTreeSet<String> {
    prompts(project)
        .names()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Returns the prompts: the built-in ones, and the project's own once it is trusted.
pub fn prompts(project: &Project) -> Prompts {
    let own = project.proposed.iter().filter_map(|(path, text)| {
        let name = path.strip_prefix("prompts/")?.strip_suffix(".xml")?;
        Some((name.to_owned(), text.clone()))
    });
    let searches = pages::search_obstacle(project).is_none();
    if project.trusted {
        Prompts::new(own, searches)
    } else {
        Prompts::new([], searches).without_trust(own.map(|(name, _)| name))
    }
}

/// Makes the prompt of a turn say of RESEARCH what holds now, whenever its session began.
pub fn bring_prompt_up_to_date(project: &Project, artifacts: &mut artifact::Artifacts) {
    let kept = artifacts.text_or_empty(artifact::SYSTEM_PROMPT);
    if let Some(text) = prompts(project).brought_up_to_date(&kept) {
        artifacts.put(artifact::SYSTEM_PROMPT, text);
    }
}

/// Returns the turn whose agent handed over to the agent of the turn after `tip`.
///
/// # Errors
/// Where the repository cannot be read.
pub fn caller(
    project: &Project,
    tip: &Turn,
    id: Option<uuid::Uuid>,
) -> anyhow::Result<Option<Caller>> {
    let Some(id) = id else { return Ok(None) };
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        if turn.meta.turn_id == id {
            let text = |name: &str| {
                turn.text(&project.repository, name)
                    .map(Option::unwrap_or_default)
            };
            return Ok(Some(Caller {
                turn_id: id,
                caller_turn_id: turn.meta.caller_turn_id,
                agent: turn.meta.agent.clone(),
                system_prompt: text(artifact::SYSTEM_PROMPT)?,
                context: context_list::read(&text(artifact::TURN_CONTEXT)?).entries,
            }));
        }
    }
    Ok(None)
}
