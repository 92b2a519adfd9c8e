//! Finds agents and their prompts, built-in or from the project, and the caller of an agent.
//!
//! Prompts of a repository count only if the user trusts it.

use std::collections::BTreeSet;

use crate::model::prompt::Prompts;
use crate::project::Project;
use crate::session::artifact;
use crate::session::transition::Agent;
use crate::session::turn::{Turn, in_next};
use crate::workflow::context::pages;

/// A trusted project's prompt takes precedence over a built-in one.
pub fn agent(project: &Project, name: &str) -> anyhow::Result<Agent> {
    let prompt = prompts(project).find(name)?;
    Ok(Agent {
        name: prompt.name,
        system_prompt: prompt.text,
    })
}

pub fn agents(project: &Project) -> BTreeSet<String> {
    prompts(project)
        .names()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// With the project's if it is trusted.
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

/// At the start of a turn, independent of the turn's own artifacts.
pub fn standing_prompt(project: &Project, tip: &Turn, name: &str) -> anyhow::Result<String> {
    let repository = &project.repository;
    if tip.next(repository)?.agent == name {
        let prompt = tip.text(repository, &in_next(artifact::SYSTEM_PROMPT))?;
        return Ok(prompt.unwrap_or_default());
    }
    Ok(agent(project, name)?.system_prompt)
}

/// The part of a stored prompt that describes RESEARCH: search settings can change after the
/// session began.
pub fn update_prompt(project: &Project, artifacts: &mut artifact::Artifacts) {
    let stored = artifacts.text_or_empty(artifact::SYSTEM_PROMPT);
    if let Some(text) = prompts(project).update_saved(&stored) {
        artifacts.insert(artifact::SYSTEM_PROMPT, text);
    }
}
