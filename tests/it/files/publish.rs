//! Publication: updates the user's files from one tree to another and keeps the user's own changes.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Instant;

use crate::support::{PATIENCE, TestRepo};
use teddy::git::object::TreeId;
use teddy::git::publish;
use teddy::git::publish::{Conflict, Guard, OverlapRule, Published};

fn guard(overlap: OverlapRule) -> Guard {
    Guard {
        operation: "test".to_owned(),
        overlap,
        ..Guard::default()
    }
}

fn tree(repo: &TestRepo) -> TreeId {
    repo.tree().parse().unwrap()
}

/// Records the trees after `before` and after `after`, then publishes the first, so that the files
/// are as after `before`.
fn trees(
    repo: &TestRepo,
    before: impl Fn(&TestRepo),
    after: impl Fn(&TestRepo),
) -> (TreeId, TreeId) {
    before(repo);
    let from = tree(repo);
    after(repo);
    let to = tree(repo);
    publish(repo, to, from);
    assert_eq!(tree(repo), from);
    (from, to)
}

/// Publishes with [`OverlapRule::Stop`].
fn publish(repo: &TestRepo, from: TreeId, to: TreeId) -> Published {
    publish::publish(&repo.open(), from, to, &guard(OverlapRule::Stop)).unwrap()
}

fn text(paths: &[Vec<u8>]) -> Vec<String> {
    paths
        .iter()
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect()
}

/// Returns all names below a directory that look like our temporary files.
fn leftovers(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(leftovers(&entry.path()));
        } else if entry
            .file_name()
            .to_string_lossy()
            .starts_with(".teddy-tmp-")
        {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

fn chmod(repo: &TestRepo, path: &str, mode: u32) {
    std::fs::set_permissions(
        repo.path().join(path),
        std::fs::Permissions::from_mode(mode),
    )
    .unwrap();
}

#[test]
fn every_kind_of_change_is_published_and_can_be_taken_back() {
    let repo = TestRepo::new();
    let (from, to) = trees(
        &repo,
        |repo| {
            for path in [
                "changed",
                "deleted",
                "deep/er/deleted",
                "to-folder",
                "from-folder/a/b",
                "script",
                "to-link",
            ] {
                repo.write(path, format!("old {path}"));
            }
            symlink("changed", repo.path().join("link")).unwrap();
            symlink("changed", repo.path().join("from-link")).unwrap();
        },
        |repo| {
            repo.write("changed", "new");
            for path in [
                "deleted",
                "deep",
                "to-folder",
                "from-folder",
                "to-link",
                "link",
                "from-link",
            ] {
                repo.remove(path);
            }
            repo.write("to-folder/a/b", "new");
            repo.write("from-folder", "new");
            repo.write("new/deep/file", "new");
            repo.write("from-link", "new");
            chmod(repo, "script", 0o755);
            symlink("nowhere", repo.path().join("link")).unwrap();
            symlink("changed", repo.path().join("to-link")).unwrap();
        },
    );
    let published = publish(&repo, from, to);
    assert_eq!(tree(&repo), to);
    assert_eq!(text(&published.conflict_paths()), [""; 0]);
    assert_eq!(
        text(&published.deleted),
        ["deep/er/deleted", "deleted", "from-folder/a/b", "to-folder"]
    );
    assert_eq!(
        text(&published.written),
        [
            "changed",
            "from-folder",
            "from-link",
            "link",
            "new/deep/file",
            "script",
            "to-folder/a/b",
            "to-link"
        ]
    );
    assert_eq!(leftovers(&repo.path()), [""; 0]);
    assert!(!repo.path().join("deep").exists(), "an empty folder stayed");
    publish(&repo, to, from);
    assert_eq!(tree(&repo), from);
}

#[test]
fn a_second_run_does_nothing() {
    let repo = TestRepo::new();
    let (from, to) = trees(&repo, |r| r.write("a", "1"), |r| r.write("a", "2"));
    publish(&repo, from, to);
    assert_eq!(publish(&repo, from, to), Published::default());
    assert_eq!(repo.read("a"), "2");
}

#[test]
fn nothing_is_written_when_one_path_is_not_as_expected() {
    let repo = TestRepo::new();
    let (from, to) = trees(
        &repo,
        |r| ["a", "b"].map(|p| r.write(p, "1")).into_iter().collect(),
        |r| {
            ["a", "b", "c"]
                .map(|p| r.write(p, "2"))
                .into_iter()
                .collect()
        },
    );
    repo.write("b", "mine");
    let published = publish(&repo, from, to);
    assert_eq!(
        (text(&published.written), text(&published.conflict_paths())),
        (vec![], vec!["b".to_owned()])
    );
    assert_eq!(
        (repo.read("a"), repo.read("b")),
        ("1".to_owned(), "mine".to_owned())
    );

    let published =
        publish::publish(&repo.open(), from, to, &guard(OverlapRule::PassOver)).unwrap();
    assert_eq!(text(&published.written), ["a", "c"]);
    assert_eq!(text(&published.conflict_paths()), ["b"]);
    assert_eq!(
        (repo.read("a"), repo.read("b")),
        ("2".to_owned(), "mine".to_owned())
    );
}

/// Publishes a change of one file after the user changed something, and compares the conflicts.
fn check_conflict(path: &str, user: impl Fn(&TestRepo), expected: &[&str]) {
    let repo = TestRepo::new();
    let (from, to) = trees(&repo, |r| r.write(path, "1"), |r| r.write(path, "2"));
    user(&repo);
    let published = publish(&repo, from, to);
    assert_eq!(text(&published.conflict_paths()), expected);
    assert_eq!(leftovers(&repo.path()), [""; 0]);
}

#[test]
fn what_the_user_did_meanwhile_is_a_conflict() {
    check_conflict("a", |r| r.remove("a"), &["a"]);
    check_conflict("a", |r| chmod(r, "a", 0o755), &["a"]);
    check_conflict("a", |r| r.write("a", "2"), &[]);
    check_conflict("d/a", |r| r.remove("d"), &["d/a"]);
    check_conflict("a", |r| (r.remove("a"), r.write("a/mine", "x")).1, &["a"]);
    check_conflict("d/a", |r| r.git(&["init", "-q", "d"]).clear(), &["d/a"]);
}

/// Opens a file for writing and returns the handle.
fn held_open(repo: &TestRepo, path: &str) -> std::fs::File {
    std::fs::OpenOptions::new()
        .append(true)
        .open(repo.path().join(path))
        .unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_a_program_has_open_for_writing_is_left_to_it() {
    use std::io::Write as _;
    let repo = TestRepo::new();
    let (from, to) = trees(
        &repo,
        |r| {
            ["a", "b", "gone"]
                .map(|p| r.write(p, "1"))
                .into_iter()
                .collect()
        },
        |r| (r.write("a", "2"), r.write("b", "2"), r.remove("gone")).2,
    );
    let mut files = ["a", "gone"].map(|path| held_open(&repo, path));
    let published = publish(&repo, from, to);
    let busy = |path: &str| (path.as_bytes().to_vec(), Conflict::Busy);
    assert_eq!(published.conflicts, ["a", "gone"].map(busy).into());
    assert_eq!(
        repo.read("b"),
        "1",
        "nothing is written where something is in the way"
    );
    let published =
        publish::publish(&repo.open(), from, to, &guard(OverlapRule::PassOver)).unwrap();
    assert_eq!(
        (text(&published.written), text(&published.conflict_paths())),
        (vec!["b".into()], vec!["a".into(), "gone".into()])
    );
    for file in &mut files {
        file.write_all(b" and late").unwrap();
    }
    assert_eq!(
        [repo.read("a"), repo.read("gone")],
        ["1 and late", "1 and late"]
    );
}

#[test]
fn what_was_replaced_is_put_away_and_a_late_write_to_it_is_kept() {
    use std::io::Write as _;
    let repo = TestRepo::new();
    let paths = ["untouched", "late", "open", "deleted"];
    let (from, to) = trees(
        &repo,
        |r| paths.map(|p| r.write(p, p)).into_iter().collect(),
        |r| {
            paths.iter().for_each(|p| r.write(p, "2"));
            r.remove("deleted");
        },
    );
    // Remove what `trees` displaced.
    publish::clear_displaced(&repo.open()).unwrap();
    publish(&repo, from, to);
    let folder = repo.path().join(".git/teddy/undo/displaced");
    let away = |end: &str| {
        let mut names = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        names.find(|path| path.to_str().unwrap().ends_with(end))
    };
    let open = |end: &str| {
        std::fs::OpenOptions::new()
            .append(true)
            .open(away(end).unwrap())
            .unwrap()
    };
    // A program can find a file before the exchange and open it afterwards.
    open(".late").write_all(b" save").unwrap();
    open(".deleted").write_all(b" save").unwrap();
    let writer = open(".open");
    // A process that another test starts has the files of this one open until it runs its program.
    let clear = |gone: &[&str]| {
        let start = Instant::now();
        let mut rescued = Vec::new();
        loop {
            rescued.extend(publish::clear_displaced(&repo.open()).unwrap());
            if gone.iter().all(|end| away(end).is_none()) || start.elapsed() > PATIENCE {
                return rescued;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    };
    let mut rescued = clear(&[".untouched", ".late", ".deleted"]);
    rescued.sort_by(|a, b| a.path.cmp(&b.path));
    let kept: Vec<_> = rescued
        .iter()
        .map(|one| {
            (
                one.path.clone(),
                std::fs::read_to_string(&one.saved_as).unwrap(),
            )
        })
        .collect();
    assert_eq!(
        kept,
        [
            (b"deleted".to_vec(), "deleted save".to_owned()),
            (b"late".to_vec(), "late save".to_owned())
        ]
    );
    assert!(away(".untouched").is_none(), "what nobody wrote to goes");
    assert_eq!(
        away(".open").is_some(),
        cfg!(target_os = "linux"),
        "what somebody may still write to stays"
    );
    drop(writer);
    assert_eq!(clear(&[".open"]), []);
    assert!(away(".open").is_none());
}

#[test]
fn a_folder_that_became_a_link_is_not_written_through() {
    let repo = TestRepo::new();
    let (from, to) = trees(&repo, |r| r.write("d/a", "1"), |r| r.write("d/a", "2"));
    let outside = repo.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a"), "1").unwrap();
    repo.remove("d");
    symlink(&outside, repo.path().join("d")).unwrap();
    assert_eq!(text(&publish(&repo, from, to).conflict_paths()), ["d/a"]);
    assert_eq!(std::fs::read_to_string(outside.join("a")).unwrap(), "1");
}

#[test]
fn a_folder_with_ignored_files_is_not_replaced() {
    let repo = TestRepo::new().file(".gitignore", "*.o\n");
    let (from, to) = trees(
        &repo,
        |r| r.write("out/a", "1"),
        |r| (r.remove("out"), r.write("out", "file")).1,
    );
    repo.write("out/cache.o", "mine");
    assert_eq!(text(&publish(&repo, from, to).conflict_paths()), ["out"]);
    assert_eq!(
        (repo.read("out/a"), repo.read("out/cache.o")),
        ("1".to_owned(), "mine".to_owned())
    );
}

#[test]
fn a_folder_keeps_what_is_ignored_when_its_files_go() {
    let repo = TestRepo::new().file(".gitignore", "*.o\n");
    let (from, to) = trees(&repo, |r| r.write("out/a", "1"), |r| r.remove("out"));
    repo.write("out/cache.o", "mine");
    assert_eq!(text(&publish(&repo, from, to).deleted), ["out/a"]);
    assert_eq!(repo.read("out/cache.o"), "mine");
}

#[test]
fn permissions_are_kept() {
    let repo = TestRepo::new();
    let (from, to) = trees(
        &repo,
        |r| ["a", "b"].map(|p| r.write(p, "1")).into_iter().collect(),
        |r| (r.write("a", "2"), r.write("b", "2"), chmod(r, "b", 0o755)).2,
    );
    chmod(&repo, "a", 0o600);
    chmod(&repo, "b", 0o640);
    publish(&repo, from, to);
    let mode = |path: &str| {
        std::fs::metadata(repo.path().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!((mode("a"), mode("b")), (0o600, 0o750));
    chmod(&repo, "b", 0o744);
    let more = trees(&repo, |_| (), |r| r.write("b", "3"));
    publish(&repo, more.0, more.1);
    assert_eq!(mode("b"), 0o744);
    publish(&repo, more.1, more.0);
    chmod(&repo, "b", 0o750);
    publish(&repo, to, from);
    assert_eq!((mode("a"), mode("b")), (0o600, 0o640));
}

#[test]
fn files_are_written_as_a_checkout_would() {
    let repo = TestRepo::new().file(".gitattributes", "*.txt text eol=crlf\n*.up filter=up\n");
    repo.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
    repo.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
    let (from, to) = trees(
        &repo,
        |r| (r.write("a.txt", "1\r\n"), r.write("b.up", "one\n")).1,
        |r| (r.write("a.txt", "2\r\n"), r.write("b.up", "two\n")).1,
    );
    publish(&repo, from, to);
    assert_eq!(
        (repo.read("a.txt"), repo.read("b.up")),
        ("2\r\n".to_owned(), "two\n".to_owned())
    );
    assert_eq!(repo.git(&["cat-file", "-p", &format!("{to}:b.up")]), "TWO");
}

#[test]
fn staged_files_are_discarded_if_another_version_cannot_be_made() {
    let repo = TestRepo::new();
    let write = |text: &'static str| {
        move |r: &TestRepo| {
            ["a", "b.x", "new/c"]
                .map(|path| r.write(path, text))
                .into_iter()
                .collect()
        }
    };
    let (from, to) = trees(&repo, write("1"), write("2"));
    repo.write(".git/info/attributes", "*.x filter=broken\n");
    for (key, value) in [("smudge", "false"), ("clean", "cat"), ("required", "true")] {
        repo.git(&["config", &format!("filter.broken.{key}"), value]);
    }

    let published = publish(&repo, from, to);
    let conflicts: Vec<_> = published.conflicts.into_iter().collect();
    assert!(
        matches!(&conflicts[..], [(path, Conflict::Failed(_))] if path == b"b.x"),
        "{conflicts:?}"
    );
    assert_eq!([repo.read("a"), repo.read("new/c")], ["1", "1"]);
    assert_eq!(leftovers(&repo.path()), [""; 0]);
}

#[test]
fn a_symlink_that_git_refuses_is_not_written() {
    let repo = TestRepo::new().file("a", "1\n");
    repo.commit("init");
    let from = tree(&repo);
    let blob = repo.git(&["rev-parse", "HEAD:a"]);
    let mut mktree = repo.command("git");
    mktree.arg("mktree");
    let entries = format!("120000 blob {blob}\t.gitmodules\n100644 blob {blob}\ta\n");
    let to = repo.reads(mktree, entries).stdout.trim().parse().unwrap();
    let conflicts = publish(&repo, from, to).conflicts;
    let why = "git refuses a symlink of this name".to_owned();
    let expected = (b".gitmodules".to_vec(), Conflict::Failed(why));
    assert_eq!(conflicts.into_iter().collect::<Vec<_>>(), [expected]);
    assert!(!repo.path().join(".gitmodules").is_symlink());
}

#[test]
fn attributes_and_the_files_they_govern_change_together() {
    let repo = TestRepo::new();
    let (from, to) = trees(
        &repo,
        |r| r.write("z.txt", "1\n"),
        |r| {
            (
                r.write(".gitattributes", "*.txt text eol=crlf\n"),
                r.write("z.txt", "2\r\n"),
            )
                .1
        },
    );
    publish(&repo, from, to);
    assert_eq!(repo.read("z.txt"), "2\r\n");
    publish(&repo, to, from);
    assert_eq!(repo.read("z.txt"), "1\n");
}

#[test]
fn a_name_that_differs_only_in_case_is_a_conflict_where_case_is_ignored() {
    let repo = TestRepo::new();
    let (from, to) = trees(&repo, |r| r.write("x", "1"), |r| r.write("Name", "2"));
    repo.git(&["config", "core.ignoreCase", "true"]);
    repo.write("name", "mine");
    let published = publish(&repo, from, to);
    let collision = (b"Name".to_vec(), Conflict::CaseCollision);
    assert_eq!(published.conflicts, [collision].into());
}

#[test]
fn a_case_change_alone_is_published_where_case_is_ignored() {
    let repo = TestRepo::new();
    let (from, to) = trees(
        &repo,
        |r| r.write("name", "1"),
        |r| (r.remove("name"), r.write("Name", "1")).1,
    );
    repo.git(&["config", "core.ignoreCase", "true"]);
    assert_eq!(text(&publish(&repo, from, to).written), ["Name"]);
}

#[test]
fn names_that_are_not_utf8_are_published() {
    use std::os::unix::ffi::OsStrExt;
    let repo = TestRepo::new();
    let odd = repo.path().join(std::ffi::OsStr::from_bytes(b"n\xff"));
    let (from, to) = trees(
        &repo,
        |r| r.write("x", "1"),
        |_| std::fs::write(&odd, "2").unwrap(),
    );
    assert_eq!(publish(&repo, from, to).written, [b"n\xff".to_vec()]);
    assert_eq!(std::fs::read(&odd).unwrap(), b"2");
}

#[test]
fn temporary_files_of_an_interrupted_run_are_swept() {
    let repo = TestRepo::new();
    let (from, to) = trees(&repo, |r| r.write("d/a", "1"), |r| r.write("d/a", "2"));
    repo.write("d/.teddy-tmp-test-1", "1");
    repo.write("d/.teddy-tmp-test-2", "2");
    repo.write("d/.teddy-tmp-test-3", "the user's save");
    repo.write("d/.teddy-tmp-other-1", "1");
    let rescued =
        publish::discard_temporaries(&repo.open(), from, to, &guard(OverlapRule::Stop)).unwrap();
    assert_eq!(rescued.len(), 1);
    assert_eq!(
        std::fs::read_to_string(&rescued[0].saved_as).unwrap(),
        "the user's save"
    );
    let other = repo
        .path()
        .join("d/.teddy-tmp-other-1")
        .display()
        .to_string();
    assert_eq!(leftovers(&repo.path()), [other]);
}

#[test]
fn a_folder_goes_with_the_last_file_that_was_moved_aside_in_it() {
    let repo = TestRepo::new();
    let (from, to) = trees(&repo, |r| r.write("d/e/a", "1"), |r| r.remove("d"));
    publish(&repo, from, to);
    repo.write("d/e/.teddy-tmp-test-1", "1");
    publish::discard_temporaries(&repo.open(), from, to, &guard(OverlapRule::Stop)).unwrap();
    assert!(!repo.path().join("d").exists());
}

#[test]
fn a_run_goes_on_beside_the_temporary_files_of_an_interrupted_one() {
    let repo = TestRepo::new();
    let (from, to) = trees(
        &repo,
        |r| r.write("d/gone", "1"),
        |r| (r.remove("d/gone"), r.write("d/new", "2")).1,
    );
    for number in 1..9 {
        repo.write(&format!("d/.teddy-tmp-test-{number}"), "1");
    }
    let published = publish(&repo, from, to);
    assert_eq!(
        (text(&published.written), text(&published.deleted)),
        (vec!["d/new".to_owned()], vec!["d/gone".to_owned()])
    );
}

#[test]
fn what_may_not_be_written_to_is_named_before_anything_is_written() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let check = |mode: u32, path: &str, made: &[&str], expected: &str| {
        let repo = TestRepo::new();
        let put = |text: &'static str| {
            move |r: &TestRepo| {
                ["a", "d/b"]
                    .map(|p| r.write(p, text))
                    .into_iter()
                    .collect::<()>()
            }
        };
        let (from, to) = trees(&repo, put("1"), |r| {
            (
                put("2")(r),
                made.iter().for_each(|p| r.write(p, "3")),
                r.remove(path),
            )
                .1
        });
        chmod(&repo, "d", mode);
        let published = publish(&repo, from, to);
        chmod(&repo, "d", 0o755);
        let unwritable = (expected.as_bytes().to_vec(), Conflict::Unwritable);
        assert_eq!(published.conflicts, [unwritable].into());
        assert_eq!(repo.read("a"), "1");
        assert_eq!(leftovers(&repo.path()), [""; 0]);
    };
    check(0o555, "a", &[], "d/b");
    check(0o000, "a", &[], "d/b");
    check(0o000, "d/b", &[], "d/b");
}

#[test]
fn many_files_are_published_on_every_core_as_they_are_on_one() {
    let repo = TestRepo::new();
    let path = |number: usize| format!("{}/{number}", number % 7);
    let numbers = || 0..1_300;
    let (from, to) = trees(
        &repo,
        |repo| numbers().for_each(|at| repo.write(&path(at), "old")),
        |repo| {
            numbers().for_each(|at| match at % 10 {
                0..=5 => repo.write(&path(at), format!("new {at}")),
                6..=8 => repo.remove(&path(at)),
                _ => repo.write(&format!("made/{at}"), "new"),
            });
        },
    );
    publish::clear_displaced(&repo.open()).unwrap();
    // A conflict in each part of the parallel work, and a file that is open for writing.
    repo.write(&path(1), "mine");
    repo.write(&path(1_298), "mine");
    repo.write("made/1299", "mine");
    let _writer = held_open(&repo, &path(16));

    let passing = guard(OverlapRule::PassOver);
    let published = publish::publish(&repo.open(), from, to, &passing).unwrap();
    let mut expected = vec![path(1), path(1_298), "made/1299".to_owned()];
    if cfg!(target_os = "linux") {
        expected.push(path(16));
    }
    expected.sort();
    assert_eq!(text(&published.conflict_paths()), expected);
    let concerned = |at: usize| {
        let name = if at % 10 == 9 {
            format!("made/{at}")
        } else {
            path(at)
        };
        (!expected.contains(&name)).then_some(name)
    };
    let of = |kinds: std::ops::RangeInclusive<usize>| {
        let some = numbers().filter(|at| kinds.contains(&(at % 10)));
        let mut some: Vec<String> = some.filter_map(concerned).collect();
        some.sort();
        some
    };
    let mut written = [of(0..=5), of(9..=9)].concat();
    written.sort();
    assert_eq!(text(&published.written), written);
    assert_eq!(text(&published.deleted), of(6..=8));
    for at in numbers() {
        let Some(name) = concerned(at) else { continue };
        match at % 10 {
            0..=5 => assert_eq!(repo.read(&name), format!("new {at}")),
            6..=8 => assert!(!repo.path().join(&name).exists(), "{name}"),
            _ => assert_eq!(repo.read(&name), "new"),
        }
    }
    assert_eq!(repo.read(&path(1)), "mine");
    assert_eq!(leftovers(&repo.path()), [""; 0]);

    let away = repo.path().join(".git/teddy/undo/displaced");
    let count = || std::fs::read_dir(&away).unwrap().count();
    assert_eq!(count(), of(0..=8).len(), "what was replaced is put away");
    assert_eq!(publish::clear_displaced(&repo.open()).unwrap(), []);
    assert_eq!(count(), 0);
}
