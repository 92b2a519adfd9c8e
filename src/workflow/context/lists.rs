//! Reads the three context lists of a turn and resolves their entries. The first input of a session
//! shows a small project as a whole.

use std::collections::BTreeSet;
use std::path::Path;

use globset::GlobMatcher;

use crate::git::ignore::TextRules;
use crate::git::object::absent::MissingObject;
use crate::git::object::{BlobId, Leaf, TreeId};
use crate::git::repository::Repository;
use crate::host::file::Root;
use crate::model::token;
use crate::project::Project;
use crate::project::teddy_files;
use crate::session::artifact::{self, Artifacts};
use crate::session::draft::Draft;
use crate::session::input::{ListScope, ResourceBody};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::context_list::{self, BadLine, ContextList, ListEntry, PathPattern};
use crate::text::damage::is_generated;
use crate::text::path::RepoPath;
use crate::text::resource::{Artifact, Resource, is_url};
use crate::workflow::user::{Event, Notice, User};

#[derive(Debug, Clone, Default)]
pub struct ContextLists {
    /// Ordered by scope.
    pub entries: Vec<(ListScope, ListedResource)>,
}

#[derive(Debug, Clone)]
pub enum ListedResource {
    /// A file, directory, page or artifact.
    Resource(Resource),
    /// Selects all files that match.
    Pattern(PathPattern, GlobMatcher),
    /// With the reason.
    Wrong(String, String),
}

/// `tree` is a snapshot of the user's files.
pub fn lists(repository: &Repository, draft: &Draft, tree: TreeId) -> anyhow::Result<ContextLists> {
    let root = Root::open(repository.workdir())?;
    let global = teddy_files::global_context(&root);
    let exists = |path: &RepoPath| exists(repository, &root, tree, path);
    Ok(ContextLists::read(&draft.artifacts, &global, &exists))
}

/// In the tree, or on disk, where git can ignore it.
pub(in crate::workflow) fn exists(
    repository: &Repository,
    root: &Root,
    tree: TreeId,
    path: &RepoPath,
) -> bool {
    let entry = repository.entry(tree, path.as_str().as_bytes());
    let on_disk = || root.kind(Path::new(path.as_str()));
    matches!(entry, Ok(Some(_))) || matches!(on_disk(), Ok(Some(_)))
}

impl ContextLists {
    /// `global` is the text of `.teddy/global.context`. `exists` decides whether an entry with glob
    /// characters is a file name or a pattern.
    pub fn read(
        artifacts: &Artifacts,
        global: &str,
        exists: &dyn Fn(&RepoPath) -> bool,
    ) -> ContextLists {
        let texts = [
            (
                ListScope::Turn,
                artifacts.text_or_empty(artifact::TURN_CONTEXT),
            ),
            (
                ListScope::Session,
                artifacts.text_or_empty(artifact::SESSION_CONTEXT),
            ),
            (ListScope::Global, global.to_owned()),
        ];
        let mut entries = Vec::new();
        for (scope, text) in texts {
            let ContextList {
                entries: own,
                wrong,
            } = context_list::read(&text);
            entries.extend(
                own.into_iter()
                    .map(|own| (scope, ListedResource::of(own, exists))),
            );
            entries.extend(
                wrong
                    .into_iter()
                    .map(|bad| (scope, ListedResource::wrong(bad))),
            );
        }

        ContextLists { entries }
    }

    /// By name, directory or pattern.
    pub fn has(&self, resource: &Resource) -> bool {
        self.entries.iter().any(|(_, entry)| entry.covers(resource))
    }

    /// Returns the name of the entry that put a resource into the input: itself, or a directory or
    /// pattern. `None` for resources that no list names.
    pub fn entry_of(&self, scope: ListScope, resource: &str) -> Option<String> {
        let parsed = match Artifact::parse(resource) {
            Some(artifact) => Resource::Artifact(artifact),
            None if is_url(resource) => Resource::Url(resource.to_owned()),
            None => Resource::File(RepoPath::parse(resource).ok()?),
        };
        let own = self.entries.iter().filter(|(other, _)| *other == scope);
        let mut covering = own.filter(|(_, entry)| entry.covers(&parsed));
        Some(covering.next()?.1.listed()?.name())
    }

    pub fn turn_has(&self, resource: &Resource) -> bool {
        self.names(ListScope::Turn, resource)
    }

    /// Whether an entry is exactly this resource.
    pub fn names(&self, scope: ListScope, resource: &Resource) -> bool {
        self.entries.iter().any(|(own, entry)| {
            *own == scope && matches!(entry, ListedResource::Resource(r) if r == resource)
        })
    }

    /// The valid entries of the turn's own list.
    pub fn turn(&self) -> Vec<context_list::ListEntry> {
        let own = self
            .entries
            .iter()
            .filter(|(scope, _)| *scope == ListScope::Turn);
        own.filter_map(|(_, entry)| entry.listed()).collect()
    }
}

impl ListedResource {
    fn of(entry: context_list::ListEntry, exists: &dyn Fn(&RepoPath) -> bool) -> ListedResource {
        match entry.among(exists) {
            context_list::ListEntry::Resource(resource) => ListedResource::Resource(resource),
            context_list::ListEntry::Pattern(pattern) => match pattern.matcher() {
                Ok(matcher) => ListedResource::Pattern(pattern, matcher),
                Err(why) => ListedResource::Wrong(pattern.as_str().to_owned(), why),
            },
        }
    }

    fn wrong(bad: BadLine) -> ListedResource {
        ListedResource::Wrong(bad.text, format!("line {}: {}", bad.line, bad.reason))
    }

    fn listed(&self) -> Option<context_list::ListEntry> {
        match self {
            ListedResource::Resource(resource) => {
                Some(context_list::ListEntry::Resource(resource.clone()))
            }
            ListedResource::Pattern(pattern, _) => {
                Some(context_list::ListEntry::Pattern(pattern.clone()))
            }
            ListedResource::Wrong(..) => None,
        }
    }

    fn covers(&self, resource: &Resource) -> bool {
        match (self, resource) {
            (ListedResource::Resource(own), _) if own == resource => true,
            (ListedResource::Resource(Resource::File(dir)), Resource::File(path)) => path
                .as_str()
                .strip_prefix(dir.as_str())
                .is_some_and(|tail| tail.starts_with('/')),
            (ListedResource::Pattern(_, matcher), Resource::File(path)) => {
                matcher.is_match(path.as_str())
            }
            _ => false,
        }
    }
}

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

pub fn has_artifact(project: &Project, tip: &Turn, artifact: &Artifact) -> bool {
    matches!(read_artifact(project, tip, artifact), Ok(Some(_)))
}

/// `None` if the artifact does not exist any more.
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

/// More files make no small project, whatever their size.
const MAX_FILES: usize = 500;
/// Lower bound for the bytes of a token, to give up without reading the files.
const MIN_TOKEN_BYTES: u64 = 8;

/// What was added to an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedFiles {
    pub files: usize,
    /// Estimated.
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
        sum += token::count(&text);
        if sum > most {
            return Ok(None);
        }
        paths.push(path);
    }

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
        let path = std::str::from_utf8(&leaf.path).ok();
        let path = path.filter(|_| leaf.is_file())?;
        let path = RepoPath::parse(path).ok()?;
        let is_shown = visible.contains(leaf.path.as_slice())
            && !leaf.path.starts_with(b".teddy/")
            && !limits.is_secret(&leaf.path)
            && !is_generated(&path, b"");
        is_shown.then_some((leaf, path))
    };
    Ok(leaves.iter().filter_map(candidate).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: &str, path: &str, expected: bool) {
        let lists = ContextLists::read(&Artifacts::default(), entry, &|_| false);
        assert_eq!(
            lists.has(&Resource::parse(path).expect("a good path")),
            expected,
            "{entry} {path}"
        );
    }

    #[test]
    fn a_folder_has_what_is_below_it() {
        check("src/", "src/a/b.rs", true);
        check("src", "src/a/b.rs", true);
        check("src", "src2/b.rs", false);
    }

    #[test]
    fn a_pattern_has_what_fits_it() {
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/x/a.rs", false);
        check("src/**/*.rs", "src/x/a.rs", true);
    }

    #[test]
    fn promise_d3_a_pattern_that_a_file_has_for_its_name_has_that_file_alone() {
        let exists = |path: &RepoPath| path.as_str() == "app/[id].tsx";
        let lists = ContextLists::read(&Artifacts::default(), "app/[id].tsx\n", &exists);
        let has = |path: &str| lists.has(&Resource::parse(path).expect("a good path"));
        assert_eq!((has("app/[id].tsx"), has("app/d.tsx")), (true, false));
    }

    #[test]
    fn a_file_outside_the_project_is_wrong() {
        let lists = ContextLists::read(&Artifacts::default(), "../secret\n", &|_| false);
        let expected = "line 1: the path leaves the project with `..`";
        assert!(
            matches!(&lists.entries[0].1, ListedResource::Wrong(text, why) if text == "../secret" && why == expected)
        );
    }
}
