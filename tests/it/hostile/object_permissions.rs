//! Packs that TeDDy writes have the permissions that git gives to its own.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::ground::{Ground, create, plan, run};

/// Runs a program in the repository with a umask.
#[track_caller]
fn with_umask(ground: &Ground, umask: &str, program: &str, args: &[&str]) {
    let script = format!("umask {umask} && exec \"$@\"");
    let mut command = ground.repo.command("sh");
    let command = command
        .current_dir(ground.repo.path())
        .args(["-c", &script, "sh", program])
        .args(args);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{umask} {args:?}: {output:?}");
}

fn packs(ground: &Ground) -> BTreeSet<PathBuf> {
    let dir = ground.repo.path().join(".git/objects/pack");
    let files = std::fs::read_dir(dir).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let is_pack = |path: &PathBuf| {
        let ending = path.extension().unwrap_or_default();
        ending == "pack" || ending == "idx"
    };
    files.filter(is_pack).collect()
}

fn modes(files: &BTreeSet<PathBuf>) -> BTreeSet<u32> {
    let mode = |file: &PathBuf| file.metadata().unwrap().permissions().mode() & 0o7777;
    files.iter().map(mode).collect()
}

#[test]
fn packs_have_the_permissions_that_git_gives_them() {
    for (umask, shared) in [
        ("022", None),
        ("077", None),
        ("027", None),
        ("077", Some("group")),
        ("077", Some("all")),
        ("022", Some("0640")),
        ("077", Some("0664")),
        ("022", Some("0600")),
        ("027", Some("umask")),
        ("077", Some("true")),
    ] {
        let ground = Ground::new();
        if let Some(shared) = shared {
            ground
                .repo
                .git(&["config", "core.sharedRepository", shared]);
        }
        let before = packs(&ground);
        let file = ground.repo.beside("plan.md");
        std::fs::write(&file, plan(&create("made.txt"))).unwrap();
        let teddy = env!("CARGO_BIN_EXE_teddy");
        let execute = ["execute", "../plan.md", "-y", "--no-replan"];
        with_umask(&ground, umask, teddy, &execute);
        let ours: BTreeSet<PathBuf> = packs(&ground).difference(&before).cloned().collect();
        assert!(!ours.is_empty());
        let ours = modes(&ours);

        with_umask(&ground, umask, "git", &["repack", "-adq"]);
        let expected = modes(&packs(&ground));
        assert_eq!(ours, expected, "umask {umask}, {shared:?}");
    }
}

/// Returns the permissions of the packs that have an object.
fn modes_of(ground: &Ground, id: &str) -> Vec<u32> {
    let packs = packs(ground).into_iter();
    let indexes = packs.filter(|file| file.extension().is_some_and(|ending| ending == "idx"));
    let has = |index: &PathBuf| {
        let listed = ground
            .repo
            .git(&["verify-pack", "-v", index.to_str().unwrap()]);
        listed.lines().any(|line| line.starts_with(id))
    };
    let pack = |index: PathBuf| modes(&BTreeSet::from([index.with_extension("pack"), index]));
    indexes.filter(has).flat_map(pack).collect()
}

#[test]
fn files_that_only_the_user_can_read_are_in_packs_that_only_the_user_can_read() {
    let ground = Ground::new();
    let private = |name: &str, content: &str| {
        ground.repo.put(name, content);
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(ground.repo.path().join(name), mode).unwrap();
    };
    private("notes.txt", "private\n");
    private("a.txt", "tracked\n");
    let teddy = env!("CARGO_BIN_EXE_teddy");
    let turn = |text: String| {
        std::fs::write(ground.repo.beside("plan.md"), plan(&text)).unwrap();
        let execute = ["execute", "../plan.md", "-y", "--no-replan"];
        with_umask(&ground, "022", teddy, &execute);
    };
    turn(create("made.txt") + &run("umask 077; echo command > own.txt"));
    private("more.txt", "more\n");
    for number in 0..4 {
        turn(create(&format!("made{number}.txt")));
    }

    let id = |content: &str| {
        std::fs::write(ground.repo.beside("content"), content).unwrap();
        ground.repo.git(&["hash-object", "../content"])
    };
    for content in ["private\n", "command\n", "more\n"] {
        assert_eq!(modes_of(&ground, &id(content)), [0o400], "{content}");
    }
    for content in ["tracked\n", "evil\n"] {
        assert_eq!(modes_of(&ground, &id(content)), [0o444], "{content}");
    }
    let tree = ground.repo.git(&["rev-parse", "teddy/sessions/s^2^{tree}"]);
    assert_eq!(modes_of(&ground, &tree), [0o444]);
    ground.repo.git(&["fsck", "--strict", "--no-dangling"]);

    // What is landed is readable as the other files of the commit.
    with_umask(&ground, "022", teddy, &["land", "-m", "landed"]);
    assert_eq!(ground.repo.git(&["show", "HEAD:own.txt"]), "command");
    assert!(modes_of(&ground, &id("command\n")).contains(&0o444));
    turn(create("last.txt"));
    assert!(modes_of(&ground, &id("command\n")).contains(&0o444));
    assert_eq!(modes_of(&ground, &id("private\n")), [0o400]);
    ground.repo.git(&["gc", "-q", "--prune=now"]);
    ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
    ground.ok(&["undo", "-y"]);
}
