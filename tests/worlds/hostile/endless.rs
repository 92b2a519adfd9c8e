//! Files that block or never end: pipes among TeDDy's own files, devices as plan or configuration.
//! TeDDy prints an error or an answer, and never hangs.

use crate::plans::{create, plan};
use crate::support::{Output, TestRepo};

/// Time limit in seconds, longer than any command here takes.
const LIMIT: &str = "120";

/// Runs teddy with the time limit.
#[track_caller]
fn teddy(repo: &TestRepo, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut teddy = repo.teddy_command(args);
    let mut command = repo.command("timeout");
    command
        .args(["-s", "KILL", LIMIT])
        .arg(teddy.get_program())
        .args(args)
        .env_clear()
        .envs(
            teddy
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .envs(variables.iter().copied())
        .current_dir(repo.path())
        .stdin(std::fs::File::open("/dev/zero").unwrap());
    teddy.current_dir(repo.path());
    let out = Output::of(&mut command);
    assert!(out.code >= 0, "waits for ever: {args:?}: {out}");
    out
}

/// A project with a session of one turn.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("First", &[create("first.txt", "1\n")]));
    repo
}

#[test]
fn attack_10_pipes_among_our_own_files_are_not_waited_at() {
    for name in [
        "teddy/own-packs",
        "teddy/index/main",
        "teddy/tips/demo",
        "teddy/own-drafts/demo",
        "teddy/kept/main",
        "teddy/worktrees/demo/index",
        "teddy/worktrees/demo/tree",
        "teddy/current/main",
        "teddy/boot",
        "teddy/pending.json",
        "logs/refs/teddy/sessions/demo",
        "logs/refs/teddy/snapshots/main",
    ] {
        let repo = project();
        let path = repo.path().join(".git").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&path);
        repo.git(&["-c", "alias.pipe=!mkfifo", "pipe", path.to_str().unwrap()]);

        std::fs::write(
            repo.beside("plan.md"),
            plan("Second", &[create("second.txt", "2\n")]),
        )
        .unwrap();
        for args in [
            &["status", "-s", "demo"][..],
            &["execute", "../plan.md", "-y", "-s", "demo"],
            &["undo", "-s", "demo"],
            &["doctor", "--fix"],
            &["gc"],
            &["log", "-s", "demo"],
        ] {
            let out = teddy(&repo, args, &[]);
            assert_eq!(out.code, 0, "{name}: {args:?}: {out}");
        }
        assert_eq!(repo.read("first.txt"), "1\n", "{name}");
    }
}

#[test]
fn attack_10_a_device_without_an_end_is_refused() {
    let repo = project();
    teddy(&repo, &["execute", "/dev/zero", "-y"], &[])
        .check(1, &["cannot read `/dev/zero`", "larger than 64 MiB"]);
    teddy(&repo, &["execute", "-", "-y"], &[])
        .check(1, &["cannot read standard input", "larger than 64 MiB"]);
    teddy(&repo, &["plan", "-m", "go", "--from", "/dev/zero"], &[])
        .check(1, &["cannot read `/dev/zero`", "larger than 64 MiB"]);
    teddy(&repo, &["status"], &[("TEDDY_CONFIG", "/dev/zero")])
        .check(1, &["cannot read `/dev/zero`", "not a regular file"]);
    teddy(&repo, &["status"], &[("TEDDY_CONFIG", "/dev/null")]).check(0, &[]);
}

/// A kind of file, and the shell command that creates it.
const IRREGULAR: [(&str, &str); 4] = [
    ("a pipe", "mkfifo \"$1\""),
    ("a device", "ln -s /dev/zero \"$1\""),
    ("a folder", "mkdir \"$1\""),
    ("3 GB", "truncate -s 3G \"$1\""),
];

/// Files that every command needs.
const NEEDED: [&str; 15] = [
    "home/config/teddy/config.yaml",
    "home/config/git/ignore",
    "home/config/git/attributes",
    "repo/.git/HEAD",
    "repo/.git/index",
    "repo/.git/config",
    "repo/.git/config.worktree",
    "repo/.git/commondir",
    "repo/.git/packed-refs",
    "repo/.git/shallow",
    "repo/.git/info/exclude",
    "repo/.git/info/attributes",
    "repo/.git/info/grafts",
    "repo/.git/info/sparse-checkout",
    "repo/.git/objects/info/alternates",
];
/// Files that only some commands need.
const NEEDED_BY_SOME: [&str; 7] = [
    "home/cache/teddy",
    "repo/.gitignore",
    "repo/.gitattributes",
    "repo/sub/.gitignore",
    "repo/sub/.gitattributes",
    "repo/.git/teddy/boot",
    "repo/.git/teddy/tips/demo",
];
/// Files that are optional or can be recreated.
const SPARE: [&str; 9] = [
    "home/config/teddy/trusted.yaml",
    "repo/.teddy/config.yaml",
    "repo/.teddy/global.context",
    "repo/.teddy/memos.yaml",
    "repo/.teddy/prompts",
    "repo/.git/teddy/index/main",
    "repo/.git/teddy/kept/main",
    "repo/.git/teddy/own-packs",
    "repo/.git/teddy/log/demo",
];

/// Replaces each file by a pipe, a device, a directory and a file of 3 GB. Returns the commands
/// with a wrong result.
fn odd_ends(names: &[&str], is_right: fn(&str, &Output) -> bool) -> Vec<String> {
    let repo = project();
    let next = plan("Second", &[create("second.txt", "2\n")]);
    std::fs::write(repo.beside("plan.md"), next).unwrap();
    let config = repo
        .beside("home/config/teddy/config.yaml")
        .display()
        .to_string();
    let shell = |script: &str, path: &str| {
        let out = Output::of(repo.command("sh").args(["-c", script, "sh", path]));
        assert_eq!(out.code, 0, "{script} {path}: {out}");
    };

    let mut odd = Vec::new();
    for (name, (what, make)) in names
        .iter()
        .flat_map(|name| IRREGULAR.map(|how| (name, how)))
    {
        let path = repo.beside(name).display().to_string();
        shell(
            "mkdir -p \"${1%/*}\"; test ! -e \"$1\" || mv \"$1\" \"$1.was\"",
            &path,
        );
        shell(make, &path);
        for args in [
            &["status", "-s", "demo"][..],
            &["execute", "../plan.md", "-y", "--no-replan", "-s", "demo"],
            &["log", "-s", "demo"],
            &["undo", "-y", "-s", "demo"],
            &["gc"],
        ] {
            let out = teddy(&repo, args, &[("TEDDY_CONFIG", &config)]);
            if !is_right(&path, &out) {
                odd.push(format!("{what} as {name}, {args:?}: {out}"));
            }
        }
        shell(
            "chmod -R u+rwX \"$1\"; rm -rf \"$1\"; test ! -e \"$1.was\" || mv \"$1.was\" \"$1\"",
            &path,
        );
        teddy(&repo, &["restore", "1", "-y", "-s", "demo"], &[]).check(0, &[]);
        assert_eq!(repo.read("first.txt"), "1\n", "{what} as {name}");
    }
    odd
}

#[test]
fn attack_10_what_every_command_needs_is_refused_by_name() {
    let odd = odd_ends(&NEEDED, |path, out| {
        out.code == 1 && out.stderr.contains("error: ") && out.stderr.contains(path)
    });
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

#[test]
fn attack_10_what_some_commands_need_ends_those_with_an_error() {
    let odd = odd_ends(&NEEDED_BY_SOME, |_, out| {
        out.code == 0 || (out.code == 1 && out.stderr.contains("error: "))
    });
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

#[test]
fn attack_10_damage_to_unneeded_objects_stops_no_command() {
    let odd = odd_ends(&SPARE, |_, out| out.code == 0);
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

#[test]
fn attack_10_a_pipe_among_the_loose_refs_is_refused_by_name() {
    for name in [
        "heads/main",
        "heads/other",
        "teddy/sessions/demo",
        "teddy/published/main",
    ] {
        let repo = project();
        let path = repo.path().join(".git/refs").join(name);
        let _ = std::fs::remove_file(&path);
        repo.git(&["-c", "alias.pipe=!mkfifo", "pipe", path.to_str().unwrap()]);
        for args in [&["status"][..], &["log"], &["doctor", "--fix"], &["gc"]] {
            teddy(&repo, args, &[]).check(1, &["cannot read", name, "not a regular file"]);
        }
    }
}

#[test]
fn rules_of_megabytes_are_named_with_what_helps() {
    for name in [".gitignore", "sub/.gitattributes"] {
        let repo = project();
        repo.put(name, vec![b'\n'; (8 << 20) + 1]);
        let words =
            format!("`{name}` is larger than 8 MiB, and git's rules cannot be read; remove it");
        teddy(&repo, &["status"], &[]).check(0, &[&words]);
        teddy(&repo, &["undo"], &[]).check(1, &[&words]);
        repo.put(name, vec![b'\n'; 8 << 20]);
        let out = teddy(&repo, &["status"], &[]);
        assert!(!out.to_string().contains("cannot be read"), "{out}");
    }
}

#[test]
fn attack_10_a_pipe_as_ignore_rules_blocks_no_command() {
    for name in [".gitignore", "sub/.gitattributes"] {
        let repo = project();
        let odd = format!("mkdir -p sub; rm -f {name}; mkfifo {name}; echo x > made");
        let file = repo.beside("plan.md");
        std::fs::write(&file, plan("Odd", &[crate::plans::execute(&odd)])).unwrap();
        let out = teddy(&repo, &["execute", "../plan.md", "-y", "--no-replan"], &[]);
        assert!(matches!(out.code, 0 | 1), "{name}: {out}");

        std::fs::write(&file, plan("Second", &[create("second.txt", "2\n")])).unwrap();
        for args in [
            &["status"][..],
            &["execute", "../plan.md", "-y", "--no-replan"],
            &["undo", "-y"],
            &["doctor", "--fix"],
            &["gc"],
        ] {
            teddy(&repo, args, &[]).check(0, &[]);
        }
    }
}
