//! The object store that commands see has what refs reach, and nothing that was only staged or
//! amended away.

use std::path::Path;

use super::ground::{Ground, everything_works, plan, run};
use crate::support::overlay::{CHECKOUT, OVERLAY, overlays};

/// git finds no object missing and no file damaged.
const SOUND: &str = "git rev-list --objects --all HEAD | git cat-file --batch-check='%(objecttype) %(rest)' > .git/all \
    && ! grep missing .git/all && git fsck --strict --no-dangling && git log -p --all > /dev/null && git status > /dev/null";

/// Writes all objects that a command can find.
const LIST: &str = "git cat-file --batch-all-objects --batch-check='%(objectname)' > out";

/// Runs a test in each way in which this machine can show files to commands.
fn in_each_backend(test: impl Fn(&Ground, &[&str])) {
    for backend in [CHECKOUT, OVERLAY] {
        if backend == CHECKOUT || overlays() {
            test(&Ground::new(), &["-c", backend]);
        }
    }
}

/// Runs a command that must succeed, and returns what it wrote to `out`.
#[track_caller]
fn out_of(ground: &Ground, command: &str, more: &[&str]) -> String {
    let command = format!("set -e; {command}");
    let tried = ground.execute_with(plan(&run(&command)), more);
    assert_eq!(tried.code, 0, "{command}: {}", tried.words);
    assert!(
        stores_of_commands(ground).is_empty(),
        "a store is left after {command}"
    );
    ground.repo.read("out")
}

fn stores_of_commands(ground: &Ground) -> Vec<std::path::PathBuf> {
    let records = ground.repo.path().join(".git/teddy/worktrees");
    let sessions = std::fs::read_dir(records).into_iter().flatten();
    let stores = sessions.map(|session| session.unwrap().path().join("visible"));
    stores.filter(|store| store.exists()).collect()
}

/// Stages a file and removes it from the index. Returns its blob.
fn stage_once(ground: &Ground, content: &str) -> String {
    ground.repo.put("ignored", content);
    ground.repo.git(&["add", "-f", "ignored"]);
    let blob = ground.repo.git(&["rev-parse", ":ignored"]);
    ground.repo.git(&["rm", "-q", "--cached", "ignored"]);
    blob
}

/// Commits a file and amends the commit without it. Returns the commit and the blob.
fn amend_away(ground: &Ground, content: &str) -> [String; 2] {
    ground.repo.put("ignored", content);
    ground.repo.git(&["add", "-f", "ignored"]);
    ground.repo.git(&["commit", "-qm", "with it"]);
    let found = ["HEAD", "HEAD:ignored"].map(|name| ground.repo.git(&["rev-parse", name]));
    ground.repo.git(&["rm", "-q", "--cached", "ignored"]);
    ground.repo.put("b.txt", "two\n");
    ground.repo.git(&["add", "b.txt"]);
    ground
        .repo
        .git(&["commit", "-q", "--amend", "-m", "without"]);
    found
}

/// Puts what neither a ref nor a reflog reaches into a cruft pack.
fn gc(ground: &Ground) {
    let expire = ["reflog", "expire", "--expire-unreachable=now", "--all"];
    ground.repo.git(&expire);
    ground.repo.git(&["gc", "-q"]);
    let names = std::fs::read_dir(ground.repo.path().join(".git/objects/pack")).unwrap();
    let mut endings = names.map(|name| name.unwrap().path());
    assert!(endings.any(|path| path.extension().is_some_and(|ending| ending == "mtimes")));
}

#[track_caller]
fn check_hidden(ground: &Ground, hidden: &[String], more: &[&str]) {
    check_hidden_after("true", ground, hidden, more);
}

/// Checks that a command, after another one, finds none of these objects.
#[track_caller]
fn check_hidden_after(first: &str, ground: &Ground, hidden: &[String], more: &[&str]) {
    let repo = ground.repo.path();
    let objects = repo.join(".git/objects").display().to_string();
    let tries = hidden.iter().map(|id| {
        format!(
            " && ! git cat-file -p {id} && ! cat {objects}/{}/{} \
             && ! GIT_ALTERNATE_OBJECT_DIRECTORIES={objects} git cat-file -p {id}",
            &id[..2],
            &id[2..]
        )
    });
    let tries = tries.collect::<String>();
    // In an overlay, the path leads to the repository of the command. Without hard links, a command
    // reads packs of which all is reached.
    let are_closed = more.contains(&CHECKOUT) && !repo.join(".git/objects").is_symlink();
    let unread = if are_closed {
        format!(" && ! grep -rq . {objects}")
    } else {
        String::new()
    };
    let command = format!("{first} && {SOUND} && {LIST}{unread}{tries}");
    let seen = out_of(ground, &command, more);
    let reached = ground.repo.git(&["rev-list", "--objects", "--all"]);
    assert!(reached.lines().count() > 3);
    let head = ground.repo.git(&["rev-parse", "HEAD"]);
    assert!(seen.contains(&head), "{seen}");
    for id in hidden {
        assert!(!seen.contains(id), "{id} is listed: {seen}");
    }
}

#[test]
fn what_was_staged_or_amended_away_is_neither_listed_nor_read() {
    in_each_backend(|ground, more| {
        let mut hidden = vec![stage_once(ground, "key 1\n")];
        hidden.extend(amend_away(ground, "key 2\n"));
        check_hidden(ground, &hidden, more);

        // Also once git has put them into a cruft pack, and once more objects are loose.
        gc(ground);
        hidden.push(stage_once(ground, "key 3\n"));
        check_hidden(ground, &hidden, more);
        ground.repo.put("c.txt", "three\n");
        ground.repo.git(&["add", "c.txt"]);
        ground.repo.git(&["commit", "-qm", "three"]);
        check_hidden(ground, &hidden, more);
        everything_works(ground, "hidden objects");
    });
}

#[test]
fn what_a_ref_reaches_again_is_seen_again() {
    in_each_backend(|ground, more| {
        let [commit, blob] = amend_away(ground, "back\n");
        gc(ground);
        check_hidden(ground, &[commit.clone(), blob.clone()], more);
        ground.repo.git(&["branch", "again", &commit]);
        let show = "git show again:ignored | tr a-z A-Z > shown";
        let seen = out_of(ground, &format!("{show} && {SOUND} && {LIST}"), more);
        assert!(seen.contains(&commit) && seen.contains(&blob), "{seen}");
        assert_eq!(ground.repo.read("shown"), "BACK\n");
        ground.repo.git(&["branch", "-qD", "again"]);
        check_hidden(ground, &[commit, blob], more);
    });
}

/// The pack of a fetch has commits whose parents the fetching side had already.
#[test]
fn commits_on_which_a_fetched_pack_is_based_are_seen() {
    in_each_backend(|ground, more| {
        let repo = &ground.repo;
        let (path, other) = (repo.path(), repo.beside("other"));
        let [path, other_path] = [&path, &other].map(|path| path.to_str().unwrap());
        repo.put("b.txt", "loose\n");
        repo.git(&["add", "b.txt"]);
        repo.git(&["commit", "-qm", "loose"]);
        repo.git(&["clone", "-q", "--no-local", path, other_path]);
        std::fs::write(other.join("c.txt"), "fetched\n").unwrap();
        repo.git_in(&other, &["add", "c.txt"]);
        repo.git_in(&other, &["commit", "-qm", "fetched"]);
        // The only branch is then one of which every object but the commits is in the pack.
        repo.git(&["-c", "fetch.unpackLimit=1", "pull", "-q", other_path]);
        let hidden = stage_once(ground, "key\n");
        check_hidden_after("git log --format=%s main > log", ground, &[hidden], more);
        let log = repo.read("log");
        assert!(log.contains("fetched\nloose\none"), "{log}");
    });
}

#[test]
fn a_command_that_adds_the_bytes_of_a_hidden_object_writes_its_own() {
    in_each_backend(|ground, more| {
        let blob = stage_once(ground, "same\n");
        let command = "printf 'same\\n' > new; git stash -q -u; git stash pop -q; git add new; \
            git commit -qm new; git rev-parse HEAD:new > out";
        assert_eq!(out_of(ground, command, more).trim(), blob);
        let session = "teddy/sessions/s^2:new";
        assert_eq!(ground.repo.git(&["rev-parse", session]), blob);
        ground.repo.git(&["gc", "-q", "--prune=now"]);
        ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(ground.repo.git(&["show", session]), "same");
    });
}

/// Without hard links, packs are symbolic links and loose objects are copied.
#[test]
fn objects_on_another_file_system_are_seen_and_hidden_alike() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    in_each_backend(|ground, more| {
        let other = tempfile::tempdir_in(memory).unwrap();
        let objects = ground.repo.path().join(".git/objects");
        ground.repo.git(&["gc", "-q"]);
        let target = other.path().join("objects");
        let mut copy = ground.repo.command("cp");
        let moved = copy.arg("-a").args([&objects, &target]).status();
        assert!(moved.unwrap().success());
        std::fs::remove_dir_all(&objects).unwrap();
        std::os::unix::fs::symlink(&target, &objects).unwrap();

        let hidden = stage_once(ground, "key\n");
        ground.repo.put("b.txt", "loose\n");
        ground.repo.git(&["add", "b.txt"]);
        ground.repo.git(&["commit", "-qm", "loose"]);
        let file = target.join(&hidden[..2]).join(&hidden[2..]);
        assert!(file.exists());
        let first = format!("! cat {}", file.display());
        check_hidden_after(&first, ground, &[hidden], more);
    });
}

/// Regression: a tree or a commit of the command's own could name such an object, which the turn then
/// reached.
#[test]
fn naming_a_hidden_object_does_not_make_it_reachable() {
    in_each_backend(|ground, more| {
        let blob = stage_once(ground, "key 1\n");
        let [commit, _] = amend_away(ground, "key 2\n");
        let tree = format!("printf '100644 blob {blob}\\tkey\\n' | git mktree --missing");
        for made in [
            format!("tree=$({tree}); parents='-p HEAD'"),
            format!("tree=$(git rev-parse HEAD^{{tree}}); parents='-p HEAD -p {commit}'"),
        ] {
            let command = format!(
                "{made}; {{ echo tree $tree; set -- $parents; while [ $# -gt 0 ]; do \
                echo parent $(git rev-parse $2); shift 2; done; \
                echo 'author a <a@b> 1 +0000'; echo 'committer a <a@b> 1 +0000'; echo; echo x; }} > c; \
                id=$(git hash-object -t commit -w --literally c); echo $id > .git/HEAD; rm c"
            );
            let tried = ground.execute_with(plan(&run(&command)), more);
            assert_eq!(tried.code, 0, "{command}: {}", tried.words);
            let report = ground.ok(&["show"]);
            assert!(report.contains(" is missing"), "{report}");
        }
        let reached = ground.repo.git(&["rev-list", "--objects", "--all"]);
        assert!(
            !reached.contains(&blob) && !reached.contains(&commit),
            "{reached}"
        );
    });
}
