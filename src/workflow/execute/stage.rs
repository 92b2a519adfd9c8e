//! The stage: the session's worktree at the user's files, the run in it, and what it left.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;

use crate::git::fingerprint::Fingerprint;
use crate::git::object::{CommitId, TreeId};
use crate::git::planted::Moment;
use crate::git::repository::Repository;
use crate::git::snapshot::Snapshot;
use crate::git::snapshot::limits::{Forced, LeftOut, Reason, shown};
use crate::git::worktree::bring::{Bring, Brought};
use crate::git::worktree::{Extent, SessionWorktree};
use crate::host::fault;
use crate::host::file::{Mode, Root};
use crate::host::sandbox::Network;
use crate::host::shell::{End, Script, run as run_script};
use crate::host::supervisor::Launcher;
use crate::plan::action::Kind;
use crate::plan::action::read::Read;
use crate::plan::memo::{self, Change};
use crate::plan::run::{Ran, Stage, run};
use crate::session::artifact::Artifacts;
use crate::session::meta::NotCaptured;
use crate::session::turn::Turn;
use crate::text::resource::{Artifact, Resource};
use crate::workflow::lookup::MEMOS;
use crate::workflow::pages::Pages;
use crate::workflow::project::Project;
use crate::workflow::tools::Equipment;
use crate::workflow::user::{Approved, Event, User};
use crate::workflow::workspace::not_captured;

/// The file in the git directory of a worktree that says that `worktree.setup` has run.
const READY: &str = "teddy-ready";

/// Where a plan runs.
pub(in crate::workflow) struct Scene<'a> {
    /// The name of the worktree: mostly the session's.
    pub name: &'a str,
    /// The turn before.
    pub tip: &'a Turn,
    /// The files at the start, as a commit.
    pub before: CommitId,
    /// Their tree.
    pub tree: TreeId,
    /// What is in reach.
    pub reach: Reach<'a>,
}

/// What is in reach of a plan besides the files.
#[derive(Clone, Copy)]
pub(in crate::workflow) enum Reach<'a> {
    /// What the settings allow.
    AsConfigured,
    /// The pages and searches that a turn has recorded, and no network for commands that can be
    /// confined.
    Recorded(&'a Artifacts),
}

/// What a run left.
pub(in crate::workflow) struct Left {
    /// What each action came to.
    pub ran: Ran,
    /// The pages that it read.
    pub pages: Pages,
    /// What is in the worktree.
    pub taken: Taken,
}

/// What a run left in its worktree, and did to the repository.
pub(in crate::workflow) struct Taken {
    /// The files.
    pub tree: TreeId,
    /// The commit that they stand on: the one before, or what the plan itself committed on it.
    pub base: CommitId,
    /// The repository's own state that a command changed.
    pub repository_changes: Vec<String>,
    /// Files that the plan left and no snapshot takes.
    pub not_captured: Vec<NotCaptured>,
}

impl Taken {
    /// Returns what is known of a worktree that cannot be read: how it began.
    fn nothing(scene: &Scene<'_>) -> Taken {
        Taken {
            tree: scene.tree,
            base: scene.before,
            repository_changes: Vec::new(),
            not_captured: Vec::new(),
        }
    }
}

/// Runs what was approved in the session's worktree.
///
/// # Errors
/// Where nothing could be run. What fails after that interrupts the run: what ran is told.
pub(in crate::workflow) fn perform(
    project: &Project,
    scene: &Scene<'_>,
    approved: &Approved,
    user: &mut dyn User,
) -> anyhow::Result<Left> {
    fault::point("before-worktree")?;
    let targets = targets(approved);
    let extent = if runs_commands(approved) {
        Extent::Whole
    } else {
        Extent::Paths(&targets)
    };
    let (worktree, linked) = open(project, scene, extent, user)?;
    fault::point("after-worktree")?;
    let began = match extent {
        Extent::Whole => Some(Began {
            fingerprint: project.repository.fingerprint()?,
            moment: project.repository.moment()?,
        }),
        Extent::Paths(_) => None,
    };

    let opened = Opened {
        root: Root::open(&worktree.path)?,
        worktree,
        linked,
        began,
    };
    let (mut ran, pages, outlived) = run_in(project, scene, &opened, approved, user)?;
    if let Err(error) = finish_memos(&opened.root, approved, &ran) {
        ran.cut_short(&error);
    }
    let taken = match outlived {
        Some(error) => Err(error),
        None => take(project, scene, &opened, &written(&ran, approved)),
    };
    let taken = taken.unwrap_or_else(|error| {
        ran.cut_short(&error);
        Taken::nothing(scene)
    });
    Ok(Left { ran, pages, taken })
}

/// Runs the actions, and returns what came of them, the pages that they read, and what makes the
/// worktree unfit to be read, if something does.
fn run_in(
    project: &Project,
    scene: &Scene<'_>,
    opened: &Opened,
    approved: &Approved,
    user: &mut dyn User,
) -> anyhow::Result<(Ran, Pages, Option<anyhow::Error>)> {
    let artifacts = |artifact: &Artifact| {
        project
            .artifact(scene.tip, artifact)
            .ok()
            .flatten()
            .is_some()
    };
    let (pages, offline) = match scene.reach {
        Reach::AsConfigured => (project.pages(), false),
        Reach::Recorded(turn) => (project.pages().offline(turn), true),
    };
    let mut policy = project.policy(&opened.worktree)?;
    policy
        .iter_mut()
        .filter(|_| offline)
        .for_each(|policy| policy.network = Network::Off);
    let launcher = Launcher::new(policy)
        .context("starting the commands of the plan")?
        .holding(project.commands_lock(scene.name));
    let confined = launcher.policy.as_ref();
    let variables = confined.map(|policy| project.cache_variables(policy));
    let mut tools = Equipment {
        worktree: &opened.worktree.path,
        settings: &project.settings.execute,
        launcher,
        variables: variables.unwrap_or_default(),
        pages,
        artifacts: &artifacts,
        user,
        left: Vec::new(),
    };

    let ran = run(
        &approved.plan,
        &approved.actions,
        &mut Stage {
            root: &opened.root,
            tools: &mut tools,
        },
    );
    // What they may still write was not approved, and would be taken for the plan's.
    let outlived = (!tools.left.is_empty()).then(|| {
        let left = tools.left.join(", ");
        anyhow::anyhow!("what a command started could not be ended: {left}")
    });
    Ok((ran, tools.pages, outlived))
}

/// Applies the memos of a plan that ran to its end: what a memo says is what holds once the plan
/// has done all that it says.
fn finish_memos(root: &Root, approved: &Approved, ran: &Ran) -> anyhow::Result<()> {
    if ran.is_whole() {
        fault::point("before-memos")?;
        apply_memos(root, approved).context("applying the memos")?;
    }
    fault::point("after-run")
}

/// Takes what a run left: its files, the commit that they stand on, and what else it changed.
fn take(
    project: &Project,
    scene: &Scene<'_>,
    opened: &Opened,
    written: &[Vec<u8>],
) -> anyhow::Result<Taken> {
    let repository = &project.repository;
    repository.clean_records();
    let false_objects = match &opened.began {
        Some(began) => repository.set_false_objects_aside(began.moment)?,
        None => Vec::new(),
    };
    let (tree, not_captured) = match opened.began {
        Some(_) => whole_worktree(project, scene, opened, written)?,
        None => {
            let snapshot = opened
                .worktree
                .repository
                .snapshot_paths(scene.tree, written)
                .context("recording what the plan did")?;
            (snapshot.tree, not_captured(&snapshot))
        }
    };
    fault::point("after-run-snapshot")?;

    let false_objects = false_objects
        .iter()
        .map(|name| format!("object {name} was not what its name says and was set aside"));
    let changed: Vec<String> = match &opened.began {
        Some(began) => began
            .fingerprint
            .differences(&repository.fingerprint()?)
            .iter()
            .map(ToString::to_string)
            .collect(),
        None => Vec::new(),
    };
    Ok(Taken {
        tree,
        base: base(project, &opened.worktree, scene.before)?,
        repository_changes: false_objects.chain(changed).collect(),
        not_captured,
    })
}

/// Opens the worktree at the user's files and brings what git ignores.
fn open(
    project: &Project,
    scene: &Scene<'_>,
    extent: Extent<'_>,
    user: &mut dyn User,
) -> anyhow::Result<(SessionWorktree, Vec<Vec<u8>>)> {
    let session = scene.name;
    let worktree = project
        .repository
        .session_worktree(&project.worktrees(), session, scene.before, extent)
        .context("the session's worktree cannot be made; nothing was run")?;
    let settings = &project.settings.worktree;
    // One that was interrupted before this was done is as good as fresh.
    let ready = worktree.repository.git_dir().join(READY);
    let fresh = worktree.fresh || (settings.setup.is_some() && !ready.exists());
    // Only a command can use what is ignored.
    let brought = match extent {
        Extent::Paths(_) if !fresh => Brought::default(),
        _ => worktree.bring(
            &project.repository,
            &Bring {
                copy: settings.copy.clone(),
                link: settings.link.clone(),
            },
        )?,
    };
    if let Some(setup) = settings.setup.as_ref().filter(|_| fresh) {
        user.tell(Event::Note(&format!("preparing the worktree: {setup}")));
        let script = Script {
            timeout: Some(project.settings.execute.timeout()),
            ..Script::new(setup.as_str(), &worktree.path)
        };
        let finished = run_script(&script, &mut |bytes| user.tell(Event::Output { bytes }))?;
        if finished.end != End::Exited(0) || !finished.left.is_empty() {
            project.repository.remove_session_worktree(session)?;
            anyhow::bail!(
                "`worktree.setup` failed with exit code {}; nothing was run",
                finished.end.code()
            );
        }
        std::fs::write(&ready, "").with_context(|| format!("writing `{}`", ready.display()))?;
    }
    Ok((worktree, brought.linked))
}

/// A worktree around a run.
struct Opened {
    /// The worktree.
    worktree: SessionWorktree,
    /// Its folder.
    root: Root,
    /// The links that lead out of it.
    linked: Vec<Vec<u8>>,
    /// The repository before the run, where commands could change it.
    began: Option<Began>,
}

/// The repository before commands ran beside it.
struct Began {
    /// What of it is the user's.
    fingerprint: Fingerprint,
    /// When that was so.
    moment: Moment,
}

/// Returns the files of the worktree, without the links that were brought, and what no snapshot
/// takes.
fn whole_worktree(
    project: &Project,
    scene: &Scene<'_>,
    opened: &Opened,
    written: &[Vec<u8>],
) -> anyhow::Result<(TreeId, Vec<NotCaptured>)> {
    let index = project.index(&format!("session-{}", scene.name));
    let repository = &opened.worktree.repository;
    let forced: Vec<Forced> = written.iter().cloned().map(Forced::new).collect();
    let mut snapshot = repository
        .snapshot(&index, &project.limits(), &forced)
        .context("recording what the plan did")?;
    add_written(repository, &mut snapshot, written).context("recording what the plan did")?;
    let (tree, not_captured) = (snapshot.tree, not_captured(&snapshot));
    let mut edits = BTreeMap::new();
    for path in &opened.linked {
        if repository.entry(tree, path)?.is_some() {
            edits.insert(path.clone(), repository.entry(scene.tree, path)?);
        }
    }
    let tree = if edits.is_empty() {
        tree
    } else {
        repository.tree_with(tree, &edits)?
    };
    Ok((tree, not_captured))
}

/// Adds the files to a snapshot that the plan itself wrote and that look like a secret: what is in
/// them is in the plan already.
fn add_written(
    repository: &Repository,
    snapshot: &mut Snapshot,
    written: &[Vec<u8>],
) -> anyhow::Result<()> {
    let is_written = |left: &LeftOut| written.iter().any(|path| shown(path) == left.path);
    let is_secret = |left: &LeftOut| matches!(left.reason, Reason::Secret | Reason::Key(_));
    let secret = snapshot
        .left_out
        .extract_if(.., |left| is_secret(left) && is_written(left));
    let secret: Vec<String> = secret.map(|left| left.path).collect();
    if secret.is_empty() {
        return Ok(());
    }
    let mut paths = written.to_vec();
    paths.retain(|path| secret.contains(&shown(path)));
    snapshot.tree = repository.snapshot_paths(snapshot.tree, &paths)?.tree;
    Ok(())
}

/// Returns whether a command will run.
pub(super) fn runs_commands(approved: &Approved) -> bool {
    approved
        .running()
        .any(|action| matches!(action.kind, Kind::Execute(_)))
}

/// Applies the approved memos in the worktree.
fn apply_memos(root: &Root, approved: &Approved) -> anyhow::Result<()> {
    let changes: Vec<Change> = approved.memos().cloned().collect();
    if changes.is_empty() {
        return Ok(());
    }
    let path = Path::new(MEMOS);
    match root.kind(path)? {
        None => Ok(root.create_new(
            path,
            memo::file::apply("", &changes).as_bytes(),
            Mode::Plain,
        )?),
        Some(_) => {
            let old = root.read(path, memo::file::MAX_FILE as u64)?;
            Ok(root.replace(
                path,
                memo::file::apply(&String::from_utf8_lossy(&old), &changes).as_bytes(),
            )?)
        }
    }
}

/// Returns every path that the plan itself may write or look at.
fn targets(approved: &Approved) -> Vec<Vec<u8>> {
    let memos = approved
        .memos
        .contains(&true)
        .then(|| MEMOS.as_bytes().to_vec());
    let read = approved
        .plan
        .actions
        .iter()
        .filter_map(|action| match &action.kind {
            Kind::Read(Read {
                resource: Resource::File(path),
            }) => Some(path),
            _ => None,
        });
    approved
        .plan
        .targets()
        .chain(read)
        .map(|path| path.as_str().as_bytes().to_vec())
        .chain(memos)
        .collect()
}

/// Returns every path that the plan itself wrote.
fn written(ran: &Ran, approved: &Approved) -> Vec<Vec<u8>> {
    let paths = ran.outcomes.iter().flat_map(|outcome| &outcome.written);
    let mut unique: BTreeMap<Vec<u8>, ()> = paths
        .map(|path| (path.as_str().as_bytes().to_vec(), ()))
        .collect();
    if ran.is_whole() && approved.memos().next().is_some() {
        unique.insert(MEMOS.as_bytes().to_vec(), ());
    }
    unique.into_keys().collect()
}

/// Returns the commit that the result stands on.
fn base(
    project: &Project,
    worktree: &SessionWorktree,
    before: CommitId,
) -> anyhow::Result<CommitId> {
    match worktree.repository.head()? {
        Some(head) if head != before && project.repository.is_ancestor(before, head)? => Ok(head),
        _ => Ok(before),
    }
}
