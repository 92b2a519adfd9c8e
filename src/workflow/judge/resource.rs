//! Shows a resource in the review, from the reviewed snapshot. Fetches nothing.

use crate::git::object::read;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::session::artifact::{self, Artifacts};
use crate::session::turn::Turn;
use crate::text::digest;
use crate::text::resource::Resource;
use crate::workflow::context::artifacts;
use crate::workflow::project::Project;
use crate::workflow::user::ResourceContent;

const MAX_SHOWN: u64 = 16 << 20;

/// Where resources are looked up.
pub struct ResourceScope<'a> {
    /// Newest turn.
    pub tip: &'a Turn,
    /// Artifacts of the draft, including web pages.
    pub artifacts: &'a Artifacts,
    /// Tree of the user's files.
    pub tree: TreeId,
}

/// Returns the content of a resource.
pub fn look(
    project: &Project,
    ground: &ResourceScope<'_>,
    resource: &Resource,
) -> anyhow::Result<ResourceContent> {
    match resource {
        Resource::File(path) => look_at_file(project, ground.tree, path.as_str()),
        Resource::Url(url) => look_at_page(project, ground, url),
        Resource::Artifact(artifact) => {
            let content = artifacts::artifact(project, ground.tip, artifact)?;
            Ok(content.map_or(
                ResourceContent::Nothing("no turn has it"),
                ResourceContent::Content,
            ))
        }
    }
}

fn look_at_file(project: &Project, tree: TreeId, path: &str) -> anyhow::Result<ResourceContent> {
    let entry = project.repository.entry(tree, path.as_bytes())?;
    Ok(match entry.as_ref().map(|entry| entry.mode) {
        Some(EntryMode::File | EntryMode::Executable) => {
            if is_large(&project.repository, entry.as_ref())? {
                return Ok(ResourceContent::Nothing("it is too large to be shown"));
            }
            ResourceContent::Content(read::checked_out(&project.repository, tree, path)?)
        }
        Some(EntryMode::Tree) => {
            let below = format!("{path}/");
            let leaves = project.repository.leaves(tree)?;
            let inside = leaves
                .iter()
                // With the slash, so that `src` does not match `src2`.
                .filter(|leaf| leaf.path.starts_with(below.as_bytes()));
            ResourceContent::Folder(
                inside
                    .map(|leaf| String::from_utf8_lossy(&leaf.path).into_owned())
                    .collect(),
            )
        }
        Some(EntryMode::Link) => ResourceContent::Nothing("it is a link"),
        Some(EntryMode::Gitlink) => ResourceContent::Nothing("it is a repository of its own"),
        None => ResourceContent::Nothing("it is not in the snapshot of your files"),
    })
}

fn is_large(repository: &Repository, entry: Option<&TreeEntry>) -> anyhow::Result<bool> {
    let size = entry.map(|entry| repository.blob_size(BlobId::of(entry.id)));
    Ok(size.transpose()?.is_some_and(|size| size > MAX_SHOWN))
}

fn look_at_page(
    project: &Project,
    ground: &ResourceScope<'_>,
    url: &str,
) -> anyhow::Result<ResourceContent> {
    let name = format!("{}{}.md", artifact::PAGES, digest(url));
    let kept = match ground.artifacts.text(&name) {
        Some(text) => Some(text),
        None => project
            .repository
            .file(ground.tip.tree, &name)?
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    };

    let page = kept.as_deref().and_then(|text| text.split_once("\n\n"));
    Ok(page.map_or(
        ResourceContent::Nothing("it is fetched when the plan runs"),
        |(_, page)| ResourceContent::Content(page.as_bytes().to_vec()),
    ))
}
