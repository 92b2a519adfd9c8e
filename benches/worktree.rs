//! Benchmarks session worktrees and publication on generated trees, relative to git.
//!
//! `cargo bench --bench worktree [-- SIZE...]` prints a table and fails if a required ratio is
//! exceeded. The times of TeDDy include opening the repository.

mod support;

use std::path::Path;
use std::time::Duration;

use support::{Row, Workspace, git_in, head, median, sizes, time};

use teddy::git::object::CommitId;
use teddy::git::publish;
use teddy::git::publish::Guard;
use teddy::git::repository::Repository;
use teddy::git::worktree;
use teddy::git::worktree::{Extent, WorktreeTarget};

const SAMPLES: usize = 11;
const CHANGED: usize = 20;

struct Bench {
    workspace: Workspace,
    commits: [CommitId; 2],
}

fn main() {
    head("git");
    let missed = sizes()
        .into_iter()
        .flat_map(measure)
        .filter(|row| !row.print())
        .count();
    assert_eq!(missed, 0, "ratios that must be reached were missed");
}

fn measure(files: usize) -> Vec<Row> {
    let bench = Bench::new(files);
    let row = |name: &str, (ours, gits), (at_first, goal)| Row {
        name: format!("{files} files, {name}"),
        ours,
        gits,
        at_first,
        goal,
    };
    vec![
        row("worktree made (git worktree add)", bench.make(), (1.0, 0.5)),
        row(
            "worktree switched (git checkout)",
            bench.switch(),
            (1.0, 0.4),
        ),
        row(
            "20 files published (git status)",
            bench.publish(),
            (1.5, 0.9),
        ),
        row(
            "git directory for commands (3 ms)",
            bench.private(),
            (1.0, 1.0),
        ),
        row(
            "the same (git clone --shared -n)",
            bench.private_or_clone(),
            (0.5, 0.2),
        ),
    ]
}

impl Bench {
    fn new(files: usize) -> Bench {
        let mut workspace = Workspace::new(files);
        let one = bench_head(&workspace.path());
        workspace.rewrite_some(CHANGED);
        workspace.git(&["commit", "-qam", "two"]);
        let two = bench_head(&workspace.path());
        Bench {
            workspace,
            commits: [one, two],
        }
    }

    /// Measures the creation of worktrees.
    fn make(&self) -> (Duration, Duration) {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            ours.push(time(|| self.ours("made", 0)));
            worktree::remove_session_worktree(&self.open(), "made").expect("it was made");
            let path = self.workspace.beside("git-made").display().to_string();
            gits.push(time(|| {
                self.workspace
                    .git(&["worktree", "add", "-q", "--detach", &path])
            }));
            self.workspace
                .git(&["worktree", "remove", "--force", &path]);
        }
        (median(ours), median(gits))
    }

    /// Measures switching a worktree between two versions.
    fn switch(&self) -> (Duration, Duration) {
        let path = self.workspace.beside("git-switched");
        self.workspace.git(&[
            "worktree",
            "add",
            "-q",
            "--detach",
            &path.display().to_string(),
        ]);
        self.ours("switched", 1);
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for sample in 0..SAMPLES {
            let to = self.commits[sample % 2].to_string();
            ours.push(time(|| self.ours("switched", sample % 2)));
            gits.push(time(|| {
                git_in(
                    &path,
                    &self.workspace.beside("home"),
                    &["checkout", "-q", "--detach", &to],
                )
            }));
        }
        (median(ours), median(gits))
    }

    /// Measures creating, importing and removing a git directory for commands, relative to a fixed
    /// 3 ms.
    fn private(&self) -> (Duration, Duration) {
        let times = (0..SAMPLES).map(|_| self.private_once()).collect();
        (median(times), Duration::from_millis(3))
    }

    /// Like [`Bench::private`], but relative to `git clone --shared`.
    fn private_or_clone(&self) -> (Duration, Duration) {
        let clone = self.workspace.beside("clone");
        let path = clone.display().to_string();
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for _ in 0..SAMPLES {
            ours.push(self.private_once());
            gits.push(time(|| {
                self.workspace
                    .git(&["clone", "-q", "--shared", "-n", ".", &path])
            }));
            std::fs::remove_dir_all(&clone).expect("it was made");
        }
        (median(ours), median(gits))
    }

    /// Measures one git directory in an existing worktree.
    fn private_once(&self) -> Duration {
        let (user, root) = (self.open(), self.workspace.beside("worktrees"));
        let at = self.commits[0];
        let worktree = worktree::session_worktree(
            &user,
            &root,
            "private",
            WorktreeTarget::unwatched(at, Extent::All),
        )
        .expect("a worktree can be made");
        time(|| {
            worktree.make_git_dir(&user, at).expect("there is room");
            let left = worktree.import(&user, at).expect("nothing was done");
            assert!(left.commit.is_none() && left.tracked.is_empty());
            worktree.remove_git_dir().expect("nothing is in the way");
        })
    }

    /// Measures publishing alternately between two versions.
    fn publish(&self) -> (Duration, Duration) {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for sample in 0..SAMPLES {
            let order = if sample % 2 == 0 { [1, 0] } else { [0, 1] };
            ours.push(time(|| {
                let repository = self.open();
                let [from, to] = order.map(|at| {
                    repository
                        .commit(self.commits[at])
                        .expect("it was made")
                        .tree
                });
                let guard = Guard {
                    operation: "bench".to_owned(),
                    ..Guard::default()
                };
                let published =
                    publish::publish(&repository, from, to, &guard).expect("nothing is in the way");
                assert!(published.conflicts.is_empty() && !published.written.is_empty());
            }));
            gits.push(time(|| self.workspace.git(&["status", "--short"])));
        }
        (median(ours), median(gits))
    }

    /// Checks out a version in a session's worktree.
    fn ours(&self, session: &str, at: usize) {
        let root = self.workspace.beside("worktrees");
        worktree::session_worktree(
            &self.open(),
            &root,
            session,
            WorktreeTarget::unwatched(self.commits[at], Extent::All),
        )
        .expect("a worktree can be made");
    }

    fn open(&self) -> Repository {
        Repository::open(&self.workspace.path()).expect("the bench made a repository")
    }
}

fn bench_head(path: &Path) -> CommitId {
    Repository::open(path)
        .and_then(|repository| teddy::git::refs::resolve(&repository, "HEAD"))
        .expect("the bench made a commit")
}
