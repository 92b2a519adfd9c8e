//! The way from the user's files to a turn: what later turns did, backwards, between the user's own
//! edits.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;

use super::{Aim, OnOverlap};
use crate::git::object::{CommitId, TreeId};
use crate::session::meta::By;
use crate::session::turn::Turn;
use crate::workflow::complete::Fit;
use crate::workflow::project::Project;

/// What some turns did to the files, one after another and with nobody's edits between them.
pub(super) struct Span {
    /// The files that it leads from.
    from: TreeId,
    /// The files that it leads to.
    to: TreeId,
}

/// Where the user's files come to after some spans.
pub(super) struct Brought {
    /// The files.
    pub tree: TreeId,
    /// Where the user's own edits meet with what a span does.
    pub overlaps: BTreeSet<Vec<u8>>,
}

/// Returns the way from the user's files to a turn: what each later turn did, backwards, so that
/// the user's own edits between two turns are nobody's to undo.
pub(super) fn spans(project: &Project, tip: &Turn, aim: &Aim<'_>) -> anyhow::Result<Vec<Span>> {
    let (target, mut spans) = (aim.turn, Vec::<Span>::new());
    let tree = |id: CommitId| project.tree(id);
    if let (Some(own), Some(last)) = (tip.published(), project.published(tip)?)
        && own != last
    {
        // Another session went on from this one's newest turn and is in the files.
        spans.push(Span {
            from: tree(last)?,
            to: tree(own)?,
        });
    }
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        let is_target = turn.commit == target.commit;
        if let Some(workspace) = &turn.meta.workspace {
            let (before, after) = (tree(workspace.before)?, tree(workspace.after)?);
            match spans.last_mut() {
                // Who asks for the turn gets what was not brought then; an undo comes to how the
                // files were.
                _ if is_target && aim.by == By::Restore && !workspace.is_whole() => {
                    spans.push(Span {
                        from: before,
                        to: after,
                    })
                }
                _ if is_target || !workspace.synced => {}
                Some(last) if last.to == after => last.to = before,
                _ => spans.push(Span {
                    from: after,
                    to: before,
                }),
            }
        }
        if is_target {
            return Ok(spans);
        }
    }
    // A turn of another session is not on the way: the files go there in one step.
    let from = project
        .published(tip)?
        .map_or_else(|| project.repository.head_tree(), tree)?;
    Ok(vec![Span {
        from,
        to: files_of(project, tip, target)?,
    }])
}

/// Returns the files of turns on the way that are there although no snapshot takes them, because
/// git ignores them: they are the turns', who wrote them, as far as they are as these left them.
/// Secrets stay out.
pub(super) fn hidden(
    project: &Project,
    now: TreeId,
    spans: &[Span],
) -> anyhow::Result<Vec<Vec<u8>>> {
    let (repository, limits) = (&project.repository, project.limits());
    let mut hidden = BTreeSet::new();
    for span in spans {
        let gone = repository
            .changes(span.from, now)?
            .into_iter()
            .filter(|change| change.new.is_none());
        let gone: BTreeSet<Vec<u8>> = gone.map(|change| change.path).collect();
        for change in repository
            .changes(span.from, span.to)?
            .into_iter()
            .filter(|change| gone.contains(&change.path))
        {
            let file = repository
                .workdir()
                .join(std::ffi::OsStr::from_bytes(&change.path));
            if !limits.is_secret(&change.path)
                && file
                    .symlink_metadata()
                    .is_ok_and(|metadata| !metadata.is_dir())
            {
                hidden.insert(change.path);
            }
        }
    }
    Ok(hidden.into_iter().collect())
}

/// Brings the user's files along the spans.
pub(super) fn bring(
    project: &Project,
    now: TreeId,
    spans: &[Span],
    on_overlap: OnOverlap,
) -> anyhow::Result<Brought> {
    let mut brought = Brought {
        tree: now,
        overlaps: BTreeSet::new(),
    };
    for span in spans {
        brought.tree = match project.fit(span.from, brought.tree, span.to)? {
            Fit::Clean(files) => files.to,
            Fit::Overlap(paths, ways) => {
                brought.overlaps.extend(paths);
                match on_overlap {
                    OnOverlap::Theirs => ways.theirs,
                    OnOverlap::Markers => ways.markers,
                    OnOverlap::Stop | OnOverlap::Ours | OnOverlap::Exact => ways.ours,
                }
            }
        };
    }
    Ok(brought)
}

/// Returns whether a path is one of these, or below one of them.
pub(super) fn is_below(path: &[u8], folders: &[String]) -> bool {
    folders.iter().any(|folder| {
        let folder = folder.trim_end_matches('/').as_bytes();
        path == folder || (path.starts_with(folder) && path.get(folder.len()) == Some(&b'/'))
    })
}

/// Returns the files of a turn: what it left, or what the first turn found.
pub(super) fn files_of(project: &Project, tip: &Turn, turn: &Turn) -> anyhow::Result<TreeId> {
    if let Some(workspace) = turn.workspace {
        return Ok(project.repository.commit(workspace)?.tree);
    }
    anyhow::ensure!(
        tip.number() > turn.number(),
        "session `{}` has no turn yet, so that there is nothing to go back to",
        tip.session
    );
    let next = project
        .store()
        .turn(&tip.session, &(turn.number() + 1).to_string())?;
    match next.meta.workspace {
        Some(workspace) => Ok(project.repository.commit(workspace.before)?.tree),
        None => anyhow::bail!(
            "turn {} does not say what your files were before it",
            next.number()
        ),
    }
}

impl Project {
    /// Returns the workspace commit that the user's files were last brought to, as this session
    /// sees it: its own newest, or a later one on top of it that another session brought.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn published(&self, tip: &Turn) -> anyhow::Result<Option<CommitId>> {
        let own = tip.published();
        let last = self.repository.reference(&self.published_reference())?;
        match (own, last) {
            (Some(own), Some(last)) if own != last && self.repository.is_ancestor(own, last)? => {
                Ok(Some(last))
            }
            (own, _) => Ok(own),
        }
    }

    /// Returns the ref of the workspace commit that this checkout was last brought to.
    pub fn published_reference(&self) -> String {
        crate::workflow::recover::published_reference(&self.repository)
    }

    /// Returns `tree` as far as the paths go, and `elsewhere` for all others.
    pub(super) fn restrict(
        &self,
        elsewhere: TreeId,
        tree: TreeId,
        paths: &[String],
    ) -> anyhow::Result<TreeId> {
        if paths.is_empty() {
            return Ok(tree);
        }
        let changes = self.repository.changes(elsewhere, tree)?;
        let edits = changes
            .into_iter()
            .filter(|change| is_below(&change.path, paths))
            .map(|change| (change.path, change.new))
            .collect();
        self.repository.tree_with(elsewhere, &edits)
    }
}
