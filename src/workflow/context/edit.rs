//! Shows and edits context lists. Comments and order of a list survive an edit.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::git::ignore::ignore_status;
use crate::git::object::TreeId;
use crate::git::refs;
use crate::host::file::{FileKind, FileMode, Root};
use crate::host::lock::{Lock, patience};
use crate::host::web::parse_url;
use crate::project::Project;
use crate::project::teddy_files::{self, GLOBAL};
use crate::session::artifact;
use crate::session::input::{ListScope, Material};
use crate::text::context_list::{self, ListEntry};
use crate::text::near::nearest;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;
use crate::workflow::context::input::{Sources, collect_material, write_input};
use crate::workflow::context::lists::{self, add_small_project, lists, lists_of_input};
use crate::workflow::context::pages;
use crate::workflow::context::requests::requests;
use crate::workflow::execute::ForeignPlan;
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{User, telling};
use crate::workspace::snapshot;

/// Name of the lock of the global list. No session can have it.
const GLOBAL_LOCK: &str = "_global";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub name: String,
    pub changed: bool,
    /// The entry names a file or directory that does not exist.
    pub is_missing: bool,
    /// The entry names a directory, and git ignores everything in it.
    pub is_ignored: bool,
    /// The entry is in the turn's list only, and names a file that snapshots leave out.
    pub is_hidden: bool,
    /// The name of the new entry alone would keep the file from the model.
    pub is_secret: bool,
    /// For a name that does not exist or is not in the list.
    pub near: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEdit {
    Add,
    Remove,
}

/// Saves the input in the draft.
pub fn make_context(project: &Project, depth: u64, user: &mut dyn User) -> anyhow::Result<String> {
    let mut session = OpenSession::current(project, "context", user)?;
    let recorded = session.record_files(&[], user)?;
    let OpenSession { tip, draft, .. } = &mut session;

    snapshot::report_captured(
        &project.checkout(),
        tip,
        draft,
        &recorded,
        &mut telling(user),
    )?;
    // The lists are saved with the plan: until then, the user can list other files.
    let lists = lists_of_input(project, tip, &mut draft.clone(), recorded.tree, user)?;
    let sources = Sources {
        tree: recorded.tree,
        tip,
        lists: &lists,
        requests: requests(project, tip, draft)?.before(&draft.meta),
        depth,
    };
    write_input(project, sources, draft, false, user)?;
    let text = draft.artifacts.text_or_empty(artifact::INPUT);
    // The input of a waiting plan stays the one that its model received.
    if !draft.is_planned() {
        session.save_draft()?;
    }

    Ok(text)
}

/// With token counts. Takes no lock.
pub fn list_context(project: &Project, depth: u64) -> anyhow::Result<Material> {
    let (tip, mut draft) = project.in_progress(&project.session()?)?;
    let tree = snapshot::snapshot(&project.checkout(), &[])?.tree;
    let mut lists = lists(&project.repository, &draft, tree)?;
    if add_small_project(project, &tip, &mut draft, &lists, tree)?.is_some() {
        lists = lists::lists(&project.repository, &draft, tree)?;
    }
    let mut pages = pages::pages_of(project, &tip, &draft)?;
    collect_material(
        project,
        Sources {
            tree,
            tip: &tip,
            lists: &lists,
            requests: requests(project, &tip, &draft)?.before(&draft.meta),
            depth,
        },
        &mut |url| pages.get(url),
    )
}

pub fn edit_context(
    project: &Project,
    scope: ListScope,
    edit: ListEdit,
    entries: &[String],
    user: &mut dyn User,
) -> anyhow::Result<Vec<Edited>> {
    let root = Root::open(project.repository.workdir())?;
    let tree = refs::head_tree(&project.repository)?;
    let exists = |path: &RepoPath| lists::exists(&project.repository, &root, tree, path);

    let mut parsed: Vec<ListEntry> = Vec::new();
    for text in entries {
        let refused = |why: String| {
            anyhow::anyhow!(
                "`{}` cannot be in a context list: {why}",
                sanitize_line(text)
            )
        };
        let entry = read_entry(text, &exists).map_err(refused)?;
        if let (ListEdit::Add, ListEntry::Resource(resource)) = (edit, &entry) {
            match resource {
                Resource::File(path) if !exists(path) => check_new(&root, path).map_err(refused)?,
                // Lists are recorded with each turn, and so would be a password.
                Resource::Url(url) => drop(parse_url(url).map_err(|why| refused(why.to_string()))?),
                _ => {}
            }
        }
        if !parsed.contains(&entry) {
            parsed.push(entry);
        }
    }

    let hidden = match (scope, edit) {
        (ListScope::Turn, ListEdit::Add) => hidden_from_turn(project, &root, &parsed)?,
        _ => Vec::new(),
    };
    let limits = project.limits();
    let is_secret = |entry: &ListEntry| {
        let is_file = matches!(entry, ListEntry::Resource(Resource::File(path)) if exists(path));
        edit == ListEdit::Add && is_file && limits.is_named_like_secret(entry.name().as_bytes())
    };
    let mut edited = Vec::new();
    change_list(project, scope, user, &mut |text| {
        let (after, changed) = apply(text, edit, &parsed, &exists);
        let listed: Vec<String> = context_list::read(text)
            .entries
            .iter()
            .map(ListEntry::name)
            .collect();
        let with_facts = |(entry, changed): (&ListEntry, bool)| {
            let is_missing =
                matches!(entry, ListEntry::Resource(Resource::File(path)) if !exists(path));
            let near = match edit {
                ListEdit::Add if is_missing => near_file(project, &root, tree, &entry.name()),
                ListEdit::Remove if !changed => {
                    nearest(&entry.name(), listed.iter().map(String::as_str)).map(str::to_owned)
                }
                _ => None,
            };
            Edited {
                name: entry.name(),
                changed,
                is_missing,
                is_ignored: edit == ListEdit::Add && is_ignored_dir(project, &root, entry),
                is_hidden: hidden.contains(entry),
                is_secret: changed && is_secret(entry),
                near,
            }
        };

        edited = parsed.iter().zip(changed).map(with_facts).collect();
        Ok(after)
    })?;
    Ok(edited)
}

/// Nothing of the project is reached through a link.
fn read_entry(text: &str, exists: &dyn Fn(&RepoPath) -> bool) -> Result<ListEntry, String> {
    // A name can end with a space, if there is a file of that name.
    let exact = ListEntry::read(text).ok();
    let exact = exact.filter(|entry| is_there(entry, exists));
    let entry = exact.map_or_else(|| ListEntry::read(text.trim()), Ok)?;
    Ok(entry.among(exists))
}

/// Returns why a file cannot be created at a path.
fn check_new(root: &Root, path: &RepoPath) -> Result<(), String> {
    if let Some(link) = link_above(root, path) {
        let link = sanitize_line(link);
        return Err(format!("it is below `{link}`, which is a symbolic link"));
    }
    path.fit_for_new(0).map_err(|why| why.to_string())
}

fn link_above<'a>(root: &Root, path: &'a RepoPath) -> Option<&'a str> {
    let is_link = |above: &&str| matches!(root.kind(Path::new(above)), Ok(Some(FileKind::Link)));
    path.ancestors().find(is_link)
}

fn is_there(entry: &ListEntry, exists: &dyn Fn(&RepoPath) -> bool) -> bool {
    matches!(entry, ListEntry::Resource(Resource::File(path)) if exists(path))
}

/// Returns whether an entry is a directory with files, and git ignores all of them.
fn is_ignored_dir(project: &Project, root: &Root, entry: &ListEntry) -> bool {
    let ListEntry::Resource(Resource::File(path)) = entry else {
        return false;
    };
    let path = path.as_str();
    let names = root.open_dir(Path::new(path)).and_then(|dir| dir.names());
    let names = names.unwrap_or_default().into_iter();
    let paths: Vec<Vec<u8>> = names
        .map(|name| [path.as_bytes(), b"/", name.as_bytes()].concat())
        .collect();
    let paths: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
    let statuses = ignore_status(&project.repository, &paths).unwrap_or_default();
    !statuses.is_empty() && statuses.iter().all(|it| it.ignored && !it.tracked)
}

/// Returns the files that no snapshot has, so that the turn's list alone does not show them.
fn hidden_from_turn(
    project: &Project,
    root: &Root,
    entries: &[ListEntry],
) -> anyhow::Result<Vec<ListEntry>> {
    let is_file = |entry: &&ListEntry| {
        matches!(entry, ListEntry::Resource(Resource::File(path))
            if matches!(root.kind(Path::new(path.as_str())), Ok(Some(FileKind::File(_)))))
    };
    let files: Vec<&ListEntry> = entries.iter().filter(is_file).collect();
    if files.is_empty() {
        return Ok(Vec::new());
    }

    let tree = snapshot::snapshot(&project.checkout(), &[])?.tree;
    let mut lists = context_list::read(&read_context(project, ListScope::Session)?).entries;
    lists.extend(context_list::read(&read_context(project, ListScope::Global)?).entries);
    let mut hidden = Vec::new();
    for file in files {
        let in_tree = project.repository.entry(tree, file.name().as_bytes())?;
        if in_tree.is_none() && !lists.contains(file) {
            hidden.push(file.clone());
        }
    }
    Ok(hidden)
}

/// A tracked file, or one in the directory of the name.
fn near_file(project: &Project, root: &Root, tree: TreeId, name: &str) -> Option<String> {
    let tracked = project.repository.leaves(tree).unwrap_or_default();
    let tracked = tracked
        .into_iter()
        .filter_map(|leaf| String::from_utf8(leaf.path).ok());

    let dir = name.rsplit_once('/').map_or("", |(dir, _)| dir);
    let opened = match dir {
        "" => root.names(),
        dir => root.open_dir(Path::new(dir)).and_then(|dir| dir.names()),
    };
    let siblings = opened.unwrap_or_default().into_iter();
    let siblings = siblings
        .filter_map(|name| name.into_string().ok())
        .map(|name| match dir {
            "" => name,
            dir => format!("{dir}/{name}"),
        });

    let names: Vec<String> = tracked.chain(siblings).collect();
    nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Fails if the text is not `before` any more.
pub fn write_context(
    project: &Project,
    scope: ListScope,
    before: &str,
    text: &str,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    change_list(project, scope, user, &mut |now| {
        anyhow::ensure!(
            // The list was open in an editor without a lock.
            now == before,
            "another program changed the list, and it was not overwritten; your text was:\n{text}"
        );
        Ok(text.to_owned())
    })
}

pub fn read_context(project: &Project, scope: ListScope) -> anyhow::Result<String> {
    if scope == ListScope::Global {
        return teddy_files::whole_global_context(&Root::open(project.repository.workdir())?);
    }

    let (_, draft) = project.in_progress(&project.session()?)?;
    Ok(draft.artifacts.text_or_empty(file(scope)))
}

fn change_list(
    project: &Project,
    scope: ListScope,
    user: &mut dyn User,
    change: &mut dyn FnMut(&str) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    if scope == ListScope::Global {
        let locks = project.repository.teddy_dir().join("locks");
        let _lock = Lock::take(&locks.join(GLOBAL_LOCK), "context", patience())?;
        let root = Root::open(project.repository.workdir())?;
        let (path, after) = (
            Path::new(GLOBAL),
            change(&teddy_files::whole_global_context(&root)?)?,
        );
        match root.kind(path)? {
            None => root.create_new(path, after.as_bytes(), FileMode::Plain)?,
            Some(_) => root.replace(path, after.as_bytes())?,
        }

        return Ok(());
    }

    let mut session = OpenSession::current(project, "context", user)?;
    let (tip, draft) = (&session.tip, &session.draft);
    // A saved draft counts as the user's, with the plan in it.
    anyhow::ensure!(
        !draft.is_planned() || project.journal().owns_draft(&tip.session, draft),
        ForeignPlan(tip.session.clone())
    );
    let artifacts = &mut session.draft.artifacts;
    let after = change(&artifacts.text_or_empty(file(scope)))?;
    artifacts.insert(file(scope), after);
    session.save_draft()
}

fn file(scope: ListScope) -> &'static str {
    if scope == ListScope::Session {
        artifact::SESSION_CONTEXT
    } else {
        artifact::TURN_CONTEXT
    }
}

/// Returns for each entry whether it changed the list.
fn apply(
    text: &str,
    edit: ListEdit,
    entries: &[ListEntry],
    exists: &dyn Fn(&RepoPath) -> bool,
) -> (String, Vec<bool>) {
    let mut after = text.to_owned();
    let mut changed = Vec::new();
    for entry in entries {
        let same = |own: &ListEntry| own.clone().among(exists) == *entry;
        let leaves = |own: &ListEntry| is_below(own, entry);
        let current = context_list::read(&after).entries;
        let is_there = current.iter().any(same);
        let before = after.clone();
        match edit {
            ListEdit::Add if is_there => {}
            ListEdit::Add => after = context_list::add(&after, entry),
            ListEdit::Remove if is_there => {
                after = context_list::retain(&after, &|own| !same(own) && !leaves(own));
            }
            // The entry of a deleted file can only be matched by name: without the file, brackets
            // in the name read as a pattern.
            ListEdit::Remove => {
                after =
                    context_list::retain(&after, &|own| own.name() != entry.name() && !leaves(own));
            }
        }

        changed.push(after != before);
    }

    (after, changed)
}

/// A directory leaves with the files below it.
fn is_below(own: &ListEntry, entry: &ListEntry) -> bool {
    match (own, entry) {
        (ListEntry::Resource(Resource::File(path)), ListEntry::Resource(Resource::File(dir))) => {
            path.ancestors().any(|above| above == dir.as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies an edit while a file `app/[id].tsx` exists.
    fn check(text: &str, edit: ListEdit, entry: &str, expected: &str) {
        let exists = |path: &RepoPath| path.as_str() == "app/[id].tsx";
        let entry = ListEntry::read(entry).expect("a good entry").among(&exists);
        let (after, changed) = apply(text, edit, &[entry], &exists);
        assert_eq!(
            (after.as_str(), changed),
            (expected, vec![text != expected])
        );
    }

    #[test]
    fn an_entry_joins_once_however_it_is_spelled() {
        check(
            "# mine\na.rs",
            ListEdit::Add,
            "b.rs",
            "# mine\na.rs\nb.rs\n",
        );
        check("a.rs\n", ListEdit::Add, "./a.rs", "a.rs\n");
        check(
            "app/[id].tsx\n",
            ListEdit::Add,
            "app/\\[id].tsx",
            "app/[id].tsx\n",
        );
        check("/*.rs\n", ListEdit::Add, "*.rs", "/*.rs\n");
    }

    #[test]
    fn comments_stay_when_an_entry_leaves() {
        check(
            "# a.rs\n/a.rs\nb.rs\n",
            ListEdit::Remove,
            "a.rs",
            "# a.rs\nb.rs\n",
        );
    }

    #[test]
    fn a_directory_leaves_with_the_files_below_it() {
        check(
            "src/a.rs\nsrcs\nsrc/x/b.rs\n",
            ListEdit::Remove,
            "src",
            "srcs\n",
        );
        check("src\nsrc/a.rs\nb\n", ListEdit::Remove, "src/", "b\n");
    }

    #[test]
    fn promise_d3_a_name_with_glob_characters_leaves_however_it_is_spelled() {
        for list in ["app/[id].tsx\nb\n", "app/\\[id].tsx\nb\n"] {
            check(list, ListEdit::Remove, "app/[id].tsx", "b\n");
            check(list, ListEdit::Remove, "app/\\[id].tsx", "b\n");
        }
        check("gone/\\[id].tsx\n", ListEdit::Remove, "gone/[id].tsx", "");
        check("\\*.md\n*.md\n", ListEdit::Remove, "*.md", "\\*.md\n");
    }
}
