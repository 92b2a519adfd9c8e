//! Renders the input of a turn, counts its tokens, and names what fills a large one.
//!
//! Files come from the snapshot on which the plan is validated. Only ignored files that the user
//! listed are read from disk.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use globset::GlobMatcher;

use crate::git::ignore::TextRules;
use crate::git::object::{BlobId, EntryMode, Leaf, TreeId};
use crate::git::snapshot::known_files::KnownTree;
use crate::git::{diff, refs};
use crate::host::file::{FileKind, Root};
use crate::host::shell::Shell;
use crate::host::threads::join_both;
use crate::model::token;
use crate::project::Project;
use crate::project::teddy_files::{self, is_own_global};
use crate::session::artifact::{INPUT, PLAN, REPORT, SYSTEM_PROMPT, USER_PROMPT};
use crate::session::draft::Draft;
use crate::session::input::{self, InputResource, ListScope, Material, ResourceBody};
use crate::session::meta::MessageOrigin;
use crate::session::report::without_prompt;
use crate::session::requests::Requests;
use crate::session::turn::Turn;
use crate::text::path::RepoPath;
use crate::text::resource::{Artifact, Resource};
use crate::text::secret::redact;
use crate::workflow::confine;
use crate::workflow::context::lists::{self, ContextLists, ListedResource};
use crate::workflow::context::{pages, requests};
use crate::workflow::model::budget::TokenEstimate;
use crate::workflow::user::{Event, LargeEntry, Notice, User};

/// Writes `input.md` into the draft, with the pages in it. Names what fills the request if it exceeds
/// `context.budget`. `takes_commands` if the user is at the prompt of a loop.
pub fn write_input(
    project: &Project,
    sources: Sources<'_>,
    draft: &mut Draft,
    takes_commands: bool,
    user: &mut dyn User,
) -> anyhow::Result<TokenEstimate> {
    let lists = sources.lists;
    let mut pages = pages::pages_of(project, sources.tip, draft)?;
    let limit = requests::max_requests_size(project);
    let sources = Sources {
        requests: sources.requests.limited_to(limit),
        ..sources
    };
    let material = collect_material(project, sources, &mut |url| pages.get(url))?;
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

    // After rendering, so that a key in any part of the input is found.
    let text = redact(&input::render(&material)).into_owned();
    let weight = TokenEstimate::of_input(&text, bytes, tokens);
    let texts = [SYSTEM_PROMPT, USER_PROMPT];
    let size = |name| draft.artifacts.text_or_empty(name).len();
    let tokens = weight.with_texts(texts.into_iter().map(size).sum());
    if tokens > project.settings.context.budget {
        user.report(Event::Notice(Notice::LargeInput {
            tokens,
            largest: largest(&material, lists),
            takes_commands,
        }));
    }

    pages.keep_in(&mut draft.artifacts);
    draft.artifacts.insert(INPUT, text);
    Ok(weight)
}

/// Entries that a large input names.
const MAX_LARGEST: usize = 3;
/// Less than this part of all entries is not worth a name.
const SMALL_PART: usize = 20;

/// Adds up the files of a directory or pattern, which can only be removed together.
fn largest(material: &Material, lists: &ContextLists) -> Vec<LargeEntry> {
    let mut sums: BTreeMap<(ListScope, String), usize> = BTreeMap::new();
    for resource in &material.resources {
        let Some(entry) = lists.entry_of(resource.scope, &resource.resource) else {
            continue;
        };
        *sums.entry((resource.scope, entry)).or_default() += resource.tokens;
    }

    let entry = |((scope, name), tokens)| LargeEntry {
        scope,
        name,
        tokens,
    };
    let total: usize = sums.values().sum();
    let mut entries: Vec<LargeEntry> = sums.into_iter().map(entry).collect();
    entries.retain(|entry| entry.tokens > total / SMALL_PART);
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.tokens));
    entries.truncate(MAX_LARGEST);
    entries
}

/// As readable text.
pub type Fetch<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

pub struct Sources<'a> {
    pub tree: TreeId,
    pub tip: &'a Turn,
    pub lists: &'a ContextLists,
    pub requests: Requests,
    /// How many turns before the previous one are included.
    pub depth: u64,
}

struct ListedFiles {
    /// Sorted by path.
    leaves: Vec<Leaf>,
    structure: String,
}

/// Gathers each resource once.
struct Collector<'a, 'f> {
    project: &'a Project,
    leaves: &'a [Leaf],
    tip: &'a Turn,
    lists: &'a ContextLists,
    /// For ignored files that the user listed.
    root: &'a Root,
    /// Rendered in a section of their own, and not again as artifacts.
    requests: &'a Requests,
    own_global: bool,
    fetch: Fetch<'f>,
    visited: BTreeSet<String>,
    resources: Vec<InputResource>,
}

pub fn collect_material(
    project: &Project,
    sources: Sources<'_>,
    fetch: Fetch<'_>,
) -> anyhow::Result<Material> {
    let root = Root::open(project.repository.workdir())?;
    let (files, status) = scan_files(project, sources.tree, &root)?;
    let mut collector = Collector {
        project,
        leaves: &files.leaves,
        tip: sources.tip,
        lists: sources.lists,
        root: &root,
        requests: &sources.requests,
        own_global: is_own_global(&project.repository),
        fetch,
        visited: BTreeSet::new(),
        resources: Vec::new(),
    };

    for (scope, entry) in &sources.lists.entries {
        collector.entry(*scope, entry)?;
    }

    collector.history(sources.depth)?;
    Ok(Material {
        cwd: project.repository.workdir().display().to_string(),
        os: describe_system(),
        shell: Shell::describe(project.settings.execute.shell.as_deref()),
        sandbox: confine::confinement(project),
        structure: files.structure,
        memos: teddy_files::memos_text(&root),
        resources: collector.resources,
        status,
        session: sources.tip.session.to_string(),
        requests: sources.requests,
    })
}

/// In parallel if the index knows the files of this tree.
fn scan_files(
    project: &Project,
    tree: TreeId,
    root: &Root,
) -> anyhow::Result<(ListedFiles, String)> {
    let index = project
        .checkout()
        .index(&project.repository.worktree_name());
    let known_tree = KnownTree::of(&project.repository, &index, tree);
    let list = || Some(ListedFiles::of(known_tree?.leaves()?, root));
    let (files, status) = join_both(list, || status_text(project, tree));

    let files = match files {
        Some(files) => files,
        None => ListedFiles::of(project.repository.leaves(tree)?, root),
    };
    Ok((files, status?))
}

impl ListedFiles {
    /// Leaves files in `.teddyignore` out of the structure only.
    fn of(leaves: Vec<Leaf>, root: &Root) -> ListedFiles {
        let rules = root.read(Path::new(".teddyignore"), 1 << 20);
        let ignore = TextRules::parse(&rules.unwrap_or_default());
        let own = |path: &&[u8]| !path.starts_with(b".teddy/");
        let files = leaves.iter().map(|leaf| leaf.path.as_slice()).filter(own);
        let mut paths: Vec<Cow<'_, str>> =
            ignore.keep(files).map(String::from_utf8_lossy).collect();
        let is_file =
            |name: &&str| matches!(root.kind(Path::new(name)), Ok(Some(FileKind::File(_))));
        let included = ignore.included_names().filter(is_file);
        paths.extend(included.map(Cow::Borrowed));

        let structure = input::structure(&paths);
        drop(paths);
        ListedFiles { leaves, structure }
    }
}

fn status_text(project: &Project, tree: TreeId) -> anyhow::Result<String> {
    let branch = refs::branch(&project.repository)?;
    let mut text = match (branch, refs::head(&project.repository)?) {
        (Some(branch), Some(_)) => format!("On branch {branch}\n"),
        (Some(branch), None) => format!("On branch {branch}, no commits yet\n"),
        (None, head) => format!(
            "HEAD detached at {}\n",
            head.map(|id| id.to_string()).unwrap_or_default()
        ),
    };

    let changes = diff::changes(
        &project.repository,
        refs::head_tree(&project.repository)?,
        tree,
    )?;
    if changes.is_empty() {
        text.push_str("nothing to commit, working tree clean\n");
    }

    for change in changes {
        let letter = match (&change.old, &change.new) {
            (None, _) => 'A',
            (_, None) => 'D',
            _ => 'M',
        };
        text.push_str(&format!(
            "{letter} {}\n",
            crate::text::sanitize::sanitize_line(&String::from_utf8_lossy(&change.path))
        ));
    }

    Ok(text)
}

impl Collector<'_, '_> {
    fn entry(&mut self, scope: ListScope, entry: &ListedResource) -> anyhow::Result<()> {
        match entry {
            ListedResource::Resource(Resource::File(path)) => self.path(scope, path),
            ListedResource::Resource(Resource::Url(url)) => {
                let inert = scope == ListScope::Global && !self.project.trusted && !self.own_global;
                let body = if inert {
                    ResourceBody::Failed("the repository is not trusted to name pages".to_owned())
                } else {
                    self.page(url)
                };

                self.show(scope, url.clone(), body);
                Ok(())
            }
            ListedResource::Resource(Resource::Artifact(artifact)) => {
                let body = self.artifact(artifact)?;
                self.show(scope, artifact.to_string(), body);
                Ok(())
            }
            ListedResource::Pattern(pattern, matcher) => {
                self.pattern(scope, pattern.as_str(), matcher)
            }
            ListedResource::Wrong(text, why) => {
                let short: String = text.chars().take(200).collect();
                self.show(scope, short, ResourceBody::Failed(why.clone()));
                Ok(())
            }
        }
    }

    /// Requests are in their own section, and feedback on a rejected plan only in the turn that
    /// corrects it.
    fn artifact(&self, artifact: &Artifact) -> anyhow::Result<ResourceBody> {
        if self.requests.has_whole(artifact) {
            return Ok(ResourceBody::Request);
        }

        let Some(turn) = lists::find_artifact_turn(self.project, self.tip, artifact)? else {
            return Ok(ResourceBody::Missing);
        };
        if artifact.name == USER_PROMPT && turn.meta.origin == MessageOrigin::Validation {
            return Ok(ResourceBody::Failed(
                "what was wrong with a plan before".to_owned(),
            ));
        }

        let contents = self.project.repository.file(turn.tree, &artifact.name)?;
        Ok(match contents.map(|bytes| self.body(&bytes)) {
            Some(ResourceBody::Text(text)) if artifact.name == REPORT => {
                ResourceBody::Text(without_prompt(&text).into_owned())
            }
            Some(body) => body,
            None => ResourceBody::Missing,
        })
    }

    fn path(&mut self, scope: ListScope, file: &RepoPath) -> anyhow::Result<()> {
        let path = file.as_str();
        if let Ok(at) = self
            .leaves
            .binary_search_by(|leaf| leaf.path.as_slice().cmp(path.as_bytes()))
        {
            return self.leaf(scope, at);
        }
        let prefix = format!("{path}/");
        let inside: Vec<usize> = (0..self.leaves.len())
            .filter(|&at| self.leaves[at].path.starts_with(prefix.as_bytes()))
            .collect();

        if inside.is_empty() {
            let body = self.outside_the_snapshot(scope, file)?;
            self.show(scope, path.to_owned(), body);
        }

        inside.into_iter().try_for_each(|at| self.leaf(scope, at))
    }

    /// Only if the user listed the file.
    fn outside_the_snapshot(
        &mut self,
        scope: ListScope,
        file: &RepoPath,
    ) -> anyhow::Result<ResourceBody> {
        // Otherwise a model could read any ignored file by adding it to its list, and so could the
        // author of a fetched session or repository.
        let is_own = |scope| match scope {
            ListScope::Turn => Ok(false),
            ListScope::Session => self.project.checkout().owns_context(self.tip),
            ListScope::Global => Ok(self.own_global),
        };
        let mut own = is_own(scope)?;
        // The list of the turn comes first, and must not hide what another one shows.
        if scope == ListScope::Turn {
            let resource = Resource::File(file.clone());
            for other in [ListScope::Session, ListScope::Global] {
                own |= self.lists.names(other, &resource) && is_own(other)?;
            }
        }
        if !own {
            return Ok(ResourceBody::Missing);
        }

        let path = file.as_str();

        if let Ok(Some(FileKind::Dir)) = self.root.kind(Path::new(path)) {
            let why = "a directory without files in the snapshot".to_owned();
            return Ok(ResourceBody::Failed(why));
        }
        let limit = self.project.settings.context.max_resource_size.0;
        let contents = self.root.read(Path::new(path), limit);
        Ok(contents.map_or(ResourceBody::Missing, |bytes| self.body(&bytes)))
    }

    fn pattern(
        &mut self,
        scope: ListScope,
        text: &str,
        matcher: &GlobMatcher,
    ) -> anyhow::Result<()> {
        let fits =
            |leaf: &Leaf| std::str::from_utf8(&leaf.path).is_ok_and(|path| matcher.is_match(path));
        let matching: Vec<usize> = (0..self.leaves.len())
            .filter(|&at| fits(&self.leaves[at]))
            .collect();
        if matching.is_empty() {
            self.show(scope, text.to_owned(), ResourceBody::Missing);
        }

        matching.into_iter().try_for_each(|at| self.leaf(scope, at))
    }

    fn leaf(&mut self, scope: ListScope, at: usize) -> anyhow::Result<()> {
        let leaf = &self.leaves[at];
        let name = String::from_utf8_lossy(&leaf.path).into_owned();
        if self.visited.contains(&name) {
            return Ok(());
        }

        let body = match leaf.mode {
            EntryMode::Blob | EntryMode::BlobExecutable => {
                let (repository, id) = (&self.project.repository, BlobId::of(leaf.id));
                match repository.blob_size(id)? {
                    bytes if bytes > self.limit() => ResourceBody::TooLarge { bytes },
                    _ => self.body(&repository.blob(id)?),
                }
            }
            EntryMode::Link => ResourceBody::Failed("a symbolic link".to_owned()),
            EntryMode::Commit | EntryMode::Tree => {
                ResourceBody::Failed("a repository of its own".to_owned())
            }
        };
        self.show(scope, name, body);
        Ok(())
    }

    fn page(&mut self, url: &str) -> ResourceBody {
        if self.visited.contains(url) {
            return ResourceBody::Missing;
        }
        (self.fetch)(url).map_or_else(ResourceBody::Failed, ResourceBody::Text)
    }

    fn history(&mut self, depth: u64) -> anyhow::Result<()> {
        let number = self.tip.number();
        for back in 1..=depth.min(number.saturating_sub(1)) {
            for name in [REPORT, PLAN, USER_PROMPT] {
                let artifact = Artifact {
                    session: self.tip.session.to_string(),
                    turn: number - back,
                    name: name.to_owned(),
                };
                let turn = lists::find_artifact_turn(self.project, self.tip, &artifact)?;
                let is_user_message =
                    turn.is_some_and(|turn| turn.meta.origin == MessageOrigin::User);
                let is_there = lists::read_artifact(self.project, self.tip, &artifact)?.is_some();

                if is_there && (is_user_message || name != USER_PROMPT) {
                    self.entry(
                        ListScope::Turn,
                        &ListedResource::Resource(Resource::Artifact(artifact)),
                    )?;
                }
            }
        }

        Ok(())
    }

    fn body(&self, bytes: &[u8]) -> ResourceBody {
        ResourceBody::of(bytes, self.limit())
    }

    fn limit(&self) -> u64 {
        self.project.settings.context.max_resource_size.0
    }

    fn show(&mut self, scope: ListScope, resource: String, body: ResourceBody) {
        if !self.visited.insert(resource.clone()) {
            return;
        }

        let tokens = match &body {
            ResourceBody::Text(text) => token::count(text),
            _ => 0,
        };
        self.resources.push(InputResource {
            scope,
            resource,
            body,
            tokens,
        });
    }
}

fn describe_system() -> String {
    let kernel = rustix::system::uname();
    format!(
        "{} {}",
        kernel.sysname().to_string_lossy(),
        kernel.release().to_string_lossy()
    )
}
