//! Benchmarks snapshots of generated trees, relative to `git status` on the same files.
//!
//! `cargo bench --bench snapshot [-- SIZE...]` prints a table and fails if a required ratio is
//! exceeded. The times of TeDDy include opening the repository.

mod support;

use std::path::Path;

use support::{Row, Workspace, head, median, sizes, time};

use teddy::git::repository::Repository;
use teddy::git::snapshot;
use teddy::git::snapshot::limits::SnapshotLimits;

const SAMPLES: usize = 11;
const CHANGED: usize = 20;

fn main() {
    head("git status");
    let missed = sizes()
        .into_iter()
        .flat_map(measure)
        .filter(|row| !row.print())
        .count();
    assert_eq!(missed, 0, "ratios that must be reached were missed");
}

fn measure(files: usize) -> Vec<Row> {
    let mut workspace = Workspace::new(files);
    let first = time(|| snapshot(&workspace.path()));
    eprintln_first(files, first);
    snapshot(&workspace.path());
    let row = |name: &str, (ours, gits), (at_first, goal)| Row {
        name: format!("{files} files, {name}"),
        ours,
        gits,
        at_first,
        goal,
    };
    vec![
        row("nothing changed", sample(&mut workspace, 0), (1.2, 0.6)),
        row(
            &format!("{CHANGED} files changed"),
            sample(&mut workspace, CHANGED),
            (1.5, 1.0),
        ),
    ]
}

/// Returns the median times of TeDDy and git, measured alternately.
fn sample(workspace: &mut Workspace, changed: usize) -> (std::time::Duration, std::time::Duration) {
    let (mut ours, mut gits) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        workspace.rewrite_some(changed);
        ours.push(time(|| snapshot(&workspace.path())));
        gits.push(time(|| workspace.git(&["status", "--short"])));
    }
    (median(ours), median(gits))
}

fn snapshot(top: &Path) {
    let repository = Repository::open(top).expect("the bench made a repository");
    let index = repository.teddy_dir().join("index/main");
    snapshot::take_snapshot(&repository, &index, &SnapshotLimits::default(), &[])
        .expect("the files can be recorded");
}

#[allow(clippy::print_stderr, reason = "a bench reports")]
fn eprintln_first(files: usize, first: std::time::Duration) {
    eprintln!(
        "{files} files, first snapshot: {:.1} ms",
        first.as_secs_f64() * 1e3
    );
}
