//! Publication while the user saves files or the process is killed. No save is lost and no file is
//! torn.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::TestRepo;
use teddy::git::object::TreeId;
use teddy::git::object::batch;
use teddy::git::publish;

use teddy::git::publish::{Guard, OverlapRule};

/// Saves during a publication.
const SAVES: u64 = if crate::WORLDS { 200 } else { 60 };
const KILLS: u64 = 8;
/// Limit for the kills until one has hit a publication halfway.
const MAX_KILLS: u64 = 200;
/// Environment variable that passes the repository to the process that will be killed.
const CHILD: &str = "TEDDY_TEST_STORM";

fn guard(overlap: OverlapRule) -> Guard {
    Guard {
        operation: "storm".to_owned(),
        overlap,
        ..Guard::default()
    }
}

/// Returns a number below `limit` for `seed`, the same on every machine.
fn random(seed: u64, limit: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % limit.max(1)
}

/// Saves in place, or by a rename as many editors do.
fn save(path: &Path, text: &str, in_place: bool) {
    if in_place {
        return std::fs::write(path, text).unwrap();
    }
    let beside = path.with_extension("saving");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

/// Returns the pairs of trees for all rounds, written in one pack. A pack per object would make
/// each lookup search hundreds of them.
fn versions(repo: &TestRepo) -> Vec<(TreeId, TreeId)> {
    let repository = repo.open();
    let batch = batch::begin_batch(&repository);
    let tree = |text: Option<String>| {
        let file = text.map(|text| ("file".to_owned(), batch.blob(text.as_bytes()).unwrap()));
        let files: Vec<_> = file.into_iter().collect();
        batch.tree_of(&files).unwrap()
    };
    let version = |number: u64| {
        let from = tree(Some(format!("before {number}")));
        let to = tree((number % 4 != 3).then(|| format!("turn {number}")));
        (from, to)
    };
    let versions = (0..SAVES).map(version).collect();
    batch.finish().unwrap();
    versions
}

/// Saves the file during a publication and checks that the save is at its path or was rescued.
/// Returns whether it came after the publication had written the file.
fn round(repo: &TestRepo, (number, (from, to)): (u64, (TreeId, TreeId)), longest: u64) -> bool {
    let (path, repository) = (repo.path().join("file"), repo.open());
    repo.write("file", format!("before {number}"));
    let saved = format!("saved {number}");
    let started = Instant::now();
    let published = std::thread::scope(|scope| {
        let (path, saved) = (&path, &saved);
        scope.spawn(move || {
            let wait = Duration::from_micros(random(number, longest));
            while started.elapsed() < wait {
                std::hint::spin_loop();
            }
            save(path, saved, number.is_multiple_of(2));
        });
        publish::publish(&repository, from, to, &guard(OverlapRule::Stop)).unwrap()
    });
    // The next command finds a save to a displaced file.
    let late = publish::clear_displaced(&repository).unwrap();
    let rescued = published
        .salvaged
        .iter()
        .chain(&late)
        .any(|rescued| std::fs::read_to_string(&rescued.saved_as).unwrap() == saved);
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        rescued || found == saved,
        "round {number}: `{saved}` is lost, the file says `{found}`: {published:?}"
    );
    published.conflicts.is_empty()
}

#[test]
fn a_save_at_any_moment_survives() {
    let repo = TestRepo::new();
    let versions = versions(&repo);
    let started = Instant::now();
    round(&repo, (0, versions[0]), 0);
    let mut longest = u64::try_from(started.elapsed().as_micros()).unwrap();
    let mut late = 0;
    for version in (0..SAVES).zip(versions) {
        // On a loaded machine one measurement says little, so each round corrects it.
        if round(&repo, version, longest) {
            late += 1;
            longest = longest * 3 / 4;
        } else {
            longest = longest * 3 / 2 + 1;
        }
    }
    assert!(
        (1..SAVES).contains(&late),
        "{late} of {SAVES} saves came after the write: they were not spread out"
    );
    let left = std::fs::read_dir(repo.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = left
        .filter(|name| name.starts_with(".teddy-tmp-"))
        .collect();
    assert_eq!(left, [""; 0]);
}

/// One repeated byte, so that a torn file is recognized.
fn content(number: u64, letter: char) -> String {
    letter
        .to_string()
        .repeat(1_000 + 500 * usize::try_from(number).unwrap())
}

/// Creates many files in two versions. The first is in the worktree.
fn two_versions() -> (TestRepo, TreeId, TreeId) {
    let repo = TestRepo::new();
    let write = |letter: char| -> TreeId {
        (0..40).for_each(|number| {
            repo.write(
                &format!("d{}/{number}", number % 7),
                content(number, letter),
            )
        });
        repo.write(if letter == 'a' { "only/a" } else { "only/b/c" }, "x");
        repo.remove(if letter == 'a' { "only/b" } else { "only/a" });
        repo.tree().parse().unwrap()
    };
    repo.write("only/b/c", "x");
    let from = write('a');
    let to = write('b');
    write('a');
    (repo, from, to)
}

/// The child process of [`a_killed_publication_is_finished_by_the_next`].
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test that starts itself says so in the environment"
)]
fn child() {
    let Ok(told) = std::env::var(CHILD) else {
        return;
    };
    let [path, from, to] = told.split('\n').collect::<Vec<_>>().try_into().unwrap();
    let repository = teddy::git::repository::Repository::open(Path::new(path)).unwrap();
    publish::publish(
        &repository,
        from.parse().unwrap(),
        to.parse().unwrap(),
        &guard(OverlapRule::Stop),
    )
    .unwrap();
}

#[test]
fn a_killed_publication_is_finished_by_the_next() {
    let (repo, from, to) = two_versions();
    let (_, own_module) = module_path!().split_once("::").unwrap();
    let mut halfway = 0;
    for round in 0..MAX_KILLS {
        if round >= KILLS && halfway > 0 {
            break;
        }
        let mut child = repo
            .command(std::env::current_exe().unwrap().to_str().unwrap())
            .args([&format!("{own_module}::child"), "--exact"])
            .env(CHILD, format!("{}\n{from}\n{to}", repo.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A time says nothing about how far a loaded machine has come, so one of the files does.
        let awaited = random(round, 40);
        let path = repo.path().join(format!("d{}/{awaited}", awaited % 7));
        let old = Some(content(awaited, 'a'));
        while child.try_wait().unwrap().is_none() && std::fs::read_to_string(&path).ok() == old {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for number in 0..40 {
            let found = repo.read(&format!("d{}/{number}", number % 7));
            assert!(
                ['a', 'b']
                    .iter()
                    .any(|&letter| found == content(number, letter)),
                "round {round}: {number} is torn"
            );
        }
        let tree: TreeId = repo.tree().parse().unwrap();
        halfway += u64::from(tree != from && tree != to);
        let repository = repo.open();
        publish::publish(&repository, from, to, &guard(OverlapRule::PassOver)).unwrap();
        publish::discard_temporaries(&repository, from, to, &guard(OverlapRule::PassOver)).unwrap();
        assert_eq!(repo.tree().parse::<TreeId>().unwrap(), to, "round {round}");
        publish::publish(&repository, to, from, &guard(OverlapRule::Stop)).unwrap();
    }
    assert!(halfway > 0, "no kill hit a publication halfway");
}
