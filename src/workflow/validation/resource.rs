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

const MAX_RESOURCE: u64 = 16 << 20;

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
pub fn read_resource(
    project: &Project,
    scope: &ResourceScope<'_>,
    resource: &Resource,
) -> anyhow::Result<ResourceContent> {
    match resource {
        Resource::File(path) => read_file(project, scope.tree, path.as_str()),
        Resource::Url(url) => read_page(project, scope, url),
        Resource::Artifact(artifact) => {
            let bytes = artifacts::read_artifact(project, scope.tip, artifact)?;
            Ok(bytes.map_or(
                ResourceContent::Nothing("no turn has it"),
                ResourceContent::Content,
            ))
        }
    }
}

fn read_file(project: &Project, tree: TreeId, path: &str) -> anyhow::Result<ResourceContent> {
    let entry = project.repository.entry(tree, path.as_bytes())?;
    Ok(match entry.as_ref().map(|entry| entry.mode) {
        Some(EntryMode::File | EntryMode::Executable) => {
            if is_large(&project.repository, entry.as_ref())? {
                return Ok(ResourceContent::Nothing("it is too large to be shown"));
            }
            ResourceContent::Content(read::checked_out(&project.repository, tree, path)?)
        }
        Some(EntryMode::Tree) => {
            let prefix = format!("{path}/");
            let leaves = project.repository.leaves(tree)?;
            let inside = leaves
                .iter()
                // With the slash, so that `src` does not match `src2`.
                .filter(|leaf| leaf.path.starts_with(prefix.as_bytes()));
            ResourceContent::Dir(
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
    Ok(size.transpose()?.is_some_and(|size| size > MAX_RESOURCE))
}

fn read_page(
    project: &Project,
    scope: &ResourceScope<'_>,
    url: &str,
) -> anyhow::Result<ResourceContent> {
    let name = format!("{}{}.md", artifact::PAGES, digest(url));
    let stored = match scope.artifacts.text(&name) {
        Some(text) => Some(text),
        None => project
            .repository
            .file(scope.tip.tree, &name)?
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    };

    let page = stored.as_deref().and_then(|text| text.split_once("\n\n"));
    Ok(page.map_or(
        ResourceContent::Nothing("it is fetched when the plan runs"),
        |(_, page)| ResourceContent::Content(page.as_bytes().to_vec()),
    ))
}
