//! Renders the input of a turn, counts its tokens, and warns if it is large.

use crate::session::input::{self, Material, ResourceBody};
use crate::session::requests::Requests;
use crate::session::turn::Turn;
use crate::text::redaction::redact_values;
use crate::workflow::context::collect::Sources;
use crate::workflow::context::collect::collect_material;
use crate::workflow::context::lists::ContextLists;
use crate::workflow::context::pages::Pages;
use crate::workflow::context::requests;
use crate::workflow::model::budget::TokenEstimate;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};
use crate::workspace::snapshot::RecordedFiles;

/// Sources of an input.
pub struct InputSources<'a> {
    /// Newest turn.
    pub tip: &'a Turn,
    /// The context lists.
    pub lists: &'a ContextLists,
    /// The user's files.
    pub recorded: &'a RecordedFiles,
    /// The user's earlier requests.
    pub requests: Requests,
    /// How many turns before the previous one are included.
    pub depth: u64,
}

/// A rendered input.
pub struct RenderedInput {
    /// The text, redacted.
    pub text: String,
    /// Estimated tokens.
    pub weight: TokenEstimate,
}

/// Renders the input of the next turn, and warns if it exceeds `context.budget`.
pub fn make_input(
    project: &Project,
    sources: InputSources<'_>,
    pages: &mut Pages,
    user: &mut dyn User,
) -> anyhow::Result<RenderedInput> {
    let InputSources {
        tip,
        lists,
        recorded,
        requests,
        depth,
    } = sources;
    let material = collect_material(
        project,
        Sources {
            tree: recorded.tree,
            tip,
            lists,
            requests: requests.limited_to(requests::max_requests_size(project)),
            depth,
        },
        &mut |url| pages.get(url),
    )?;
    let (bytes, tokens) = material
        .resources
        .iter()
        .fold((0, 0), |(bytes, tokens), resource| {
            let length = if let ResourceBody::Text(text) = &resource.body {
                text.len()
            } else {
                0
            };
            (bytes + length, tokens + resource.tokens)
        });

    if tokens > project.settings.context.budget {
        let budget = project.settings.context.budget;
        user.report(Event::Notice(Notice::OverBudget {
            tokens,
            budget,
            largest: largest(&material),
        }));
    }

    // After rendering, so that a key in any part of the input is found.
    let text = redact_values(&input::render(&material), &[])
        .text
        .into_owned();
    Ok(RenderedInput {
        weight: TokenEstimate::of_input(&text, (bytes, tokens)),
        text,
    })
}

fn largest(material: &Material) -> Vec<(String, usize)> {
    let mut resources: Vec<_> = material.resources.iter().collect();
    resources.sort_by_key(|resource| std::cmp::Reverse(resource.tokens));
    resources
        .iter()
        .take(3)
        .map(|resource| (resource.resource.to_string(), resource.tokens))
        .collect()
}
