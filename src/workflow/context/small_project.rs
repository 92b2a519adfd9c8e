//! Shows a small project as a whole in the first input of a session.

use std::collections::BTreeSet;
use std::path::Path;

use crate::git::ignore::TextRules;
use crate::git::object::absent::MissingObject;
use crate::git::object::{BlobId, EntryMode, Leaf, TreeId};
use crate::host::file::Root;
use crate::model::token::TokenCache;
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::input::{ListScope, ResourceBody};
use crate::session::turn::Turn;
use crate::text::context_list::{self, ListEntry};
use crate::text::damage::is_generated;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::workflow::context::lists::{ContextLists, lists};
use crate::workflow::user::{Event, Notice, User};

/// More files make no small project, whatever their size.
const MAX_FILES: usize = 500;
/// Lower bound for the bytes of a token, to give up without reading the files.
const MIN_TOKEN_BYTES: u64 = 8;

/// What was added to an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedFiles {
    /// Number of files.
    pub files: usize,
    /// Their tokens, estimated.
    pub tokens: usize,
}

/// Adds all text files of a small project to the list of a session's first turn, unless the user
/// listed files. Files that look like secrets, contain a key or are in `.teddyignore` are left out.
pub fn add_small_project(
    project: &Project,
    tip: &Turn,
    draft: &mut Draft,
    lists: &ContextLists,
    tree: TreeId,
) -> anyhow::Result<Option<AddedFiles>> {
    let own = |scope: &ListScope| *scope != ListScope::Global;
    let has_listed = lists.entries.iter().any(|(scope, _)| own(scope));
    if tip.number() > 0 || has_listed {
        return Ok(None);
    }
    let leaves = project.repository.leaves(tree)?;
    let (paths, tokens) = match small_files(project, &leaves) {
        // Files that only the server of a partial clone has are no reason to fail.
        Err(error) if project.repository.is_partial() && is_missing(&error) => return Ok(None),
        Ok(None) => return Ok(None),
        Err(error) => return Err(error),
        Ok(Some(small)) => small,
    };
    if paths.is_empty() {
        return Ok(None);
    }

    let mut text = draft.artifacts.text_or_empty(artifact::TURN_CONTEXT);
    for path in &paths {
        let entry = ListEntry::Resource(Resource::File(path.clone()));
        text = context_list::add(&text, &entry);
    }
    draft.artifacts.insert(artifact::TURN_CONTEXT, text);
    Ok(Some(AddedFiles {
        files: paths.len(),
        tokens,
    }))
}

fn is_missing(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<MissingObject>())
}

/// Returns the context lists of the next input. A small project is added to those of the first turn.
pub fn lists_of_input(
    project: &Project,
    tip: &Turn,
    draft: &mut Draft,
    tree: TreeId,
    user: &mut dyn User,
) -> anyhow::Result<ContextLists> {
    let before = lists(&project.repository, draft, tree)?;
    match add_small_project(project, tip, draft, &before, tree)? {
        None => Ok(before),
        Some(AddedFiles { files, tokens }) => {
            user.report(Event::Notice(Notice::WholeProject { files, tokens }));
            lists(&project.repository, draft, tree)
        }
    }
}

/// Returns the text files and their tokens; `None` if they have more than
/// `context.whole_project_tokens`.
fn small_files(
    project: &Project,
    leaves: &[Leaf],
) -> anyhow::Result<Option<(Vec<RepoPath>, usize)>> {
    let most = project.settings.context.whole_project_tokens;
    if most == 0 || leaves.len() > MAX_FILES {
        return Ok(None);
    }

    let (repository, limits) = (&project.repository, project.limits());
    let mut tokens = TokenCache::open(&repository.teddy_dir().join("tokens"));
    let max_size = project.settings.context.max_resource_size.0;
    let (mut paths, mut sum, mut bytes_sum) = (Vec::new(), 0, 0);
    for (leaf, path) in candidates(project, leaves)? {
        let id = BlobId::of(leaf.id);
        let size = repository.blob_size(id)?;
        bytes_sum += size;
        if bytes_sum > (most as u64).saturating_mul(MIN_TOKEN_BYTES) {
            return Ok(None);
        }

        let bytes = repository.blob(id)?;
        let ResourceBody::Text(text) = ResourceBody::of(&bytes, max_size) else {
            continue;
        };
        if limits.key_in(path.as_str().as_bytes(), &bytes).is_some() {
            continue;
        }
        sum += tokens.count(&leaf.id.to_string(), &text);
        if sum > most {
            return Ok(None);
        }
        paths.push(path);
    }

    // The cache only saves time.
    let _ = tokens.save();
    Ok(Some((paths, sum)))
}

fn candidates<'a>(
    project: &Project,
    leaves: &'a [Leaf],
) -> anyhow::Result<Vec<(&'a Leaf, RepoPath)>> {
    let root = Root::open(project.repository.workdir())?;
    let rules = root.read(Path::new(".teddyignore"), 1 << 20);
    let ignore = TextRules::parse(&rules.unwrap_or_default());
    let limits = project.limits();
    let names = leaves.iter().map(|leaf| leaf.path.as_slice());
    let visible: BTreeSet<&[u8]> = ignore.keep(names).collect();

    let candidate = |leaf: &'a Leaf| {
        let is_file = matches!(leaf.mode, EntryMode::File | EntryMode::Executable);
        let path = std::str::from_utf8(&leaf.path).ok().filter(|_| is_file)?;
        let path = RepoPath::parse(path).ok()?;
        let is_shown = visible.contains(leaf.path.as_slice())
            && !leaf.path.starts_with(b".teddy/")
            && !limits.is_secret(&leaf.path)
            && !is_generated(&path, b"");
        is_shown.then_some((leaf, path))
    };
    Ok(leaves.iter().filter_map(candidate).collect())
}
