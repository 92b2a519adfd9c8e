//! `land` with the hook managers, filters and signing programs that real repositories use. What a
//! machine lacks is skipped and named. `TEDDY_NODE_MODULES` names a `node_modules` with husky,
//! lint-staged, commitlint and its conventional configuration.

use std::path::PathBuf;

use crate::plans::{create, edit, execute, plan};
use crate::support::landing::{check_clean, everything, hook, status};
use crate::support::machine::write_program;
use crate::support::{Output, TestRepo, skipped};

/// Returns whether a program is installed; says so if it is not.
fn has(repo: &TestRepo, program: &str) -> bool {
    let mut command = repo.command(program);
    let found = command.arg("--version").output();
    let is_there = found.is_ok_and(|out| out.status.success());
    if !is_there {
        skipped(&format!("`{program}` is not installed"));
    }
    is_there
}

fn run(repo: &TestRepo, program: &str, args: &[&str]) {
    let mut command = repo.command(program);
    Output::of(command.current_dir(repo.path()).args(args)).check(0, &[]);
}

/// A project with edits of the user's, staged or not, beside a turn that changes `a.txt` and makes
/// `new.txt`.
fn project(files: &[(&str, &str)]) -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "raw\n")
        .file("own.txt", "own\n")
        .file(".gitignore", "node_modules\n");
    for (name, content) in files {
        repo.write(name, content);
    }
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.write("own.txt", "own\nraw mine\n");
    repo.write("staged.txt", "raw staged\n");
    repo.git(&["add", "staged.txt"]);
    repo
}

fn turn(repo: &TestRepo) {
    let actions = [execute("echo raw2 >> a.txt"), create("new.txt", "raw3\n")];
    repo.run_plan(&plan("Work", &actions));
}

/// Checks that the landing has what a formatter made, and that the user's edits are untouched.
#[track_caller]
fn check_formatted(repo: &TestRepo) {
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "FIXED\nFIXED2");
    assert_eq!(repo.git(&["show", "HEAD:new.txt"]), "FIXED3");
    assert_eq!(repo.read("a.txt"), "FIXED\nFIXED2\n");
    assert_eq!(repo.read("own.txt"), "own\nraw mine\n");
    assert_eq!(status(repo), " M own.txt\nA  staged.txt");
    assert_eq!(repo.git(&["stash", "list"]), "");
    check_clean(repo);
}

#[test]
fn pre_commit() {
    const CONFIG: &str = "repos:\n- repo: local\n  hooks:\n  - {id: fix, name: fix, \
                          entry: sed -i s/raw/FIXED/, language: system, files: txt$}\n";
    let repo = project(&[(".pre-commit-config.yaml", CONFIG)]);
    if !has(&repo, "pre-commit") {
        return;
    }
    run(&repo, "pre-commit", &["install"]);
    turn(&repo);
    let out = repo.teddy(&["land", "-m", "Land"]);
    out.check(1, &["before it refused, a hook changed `a.txt`, `new.txt`"]);
    repo.done(&["land", "-m", "Land", "--with-repairs"]);
    check_formatted(&repo);
}

#[test]
fn lefthook() {
    const CONFIG: &str = "pre-commit:\n  commands:\n    fix:\n      run: sed -i s/raw/FIXED/ {staged_files}\n      \
                          stage_fixed: true\n      glob: '*.txt'\n";
    let repo = project(&[("lefthook.yml", CONFIG)]);
    if !has(&repo, "lefthook") {
        return;
    }
    run(&repo, "lefthook", &["install"]);
    turn(&repo);
    repo.done(&["land", "-m", "Land"]);
    check_formatted(&repo);
}

#[test]
fn husky_with_lint_staged_and_commitlint() {
    let Some(modules) = teddy::host::env::var_os("TEDDY_NODE_MODULES").map(PathBuf::from) else {
        skipped("`TEDDY_NODE_MODULES` names no directory");
        return;
    };
    const PACKAGE: &str = r#"{"name": "x", "type": "module",
        "lint-staged": {"*.txt": ["sed -i s/raw/FIXED/"]},
        "commitlint": {"extends": ["@commitlint/config-conventional"]}}"#;
    let repo = project(&[
        ("package.json", PACKAGE),
        (".husky/pre-commit", "npx lint-staged\n"),
        (
            ".husky/commit-msg",
            "npx --no-install commitlint --edit \"$1\"\n",
        ),
    ]);
    std::os::unix::fs::symlink(modules, repo.path().join("node_modules")).unwrap();
    run(&repo, "npx", &["husky"]);
    turn(&repo);
    repo.teddy(&["land", "-m", "no type"])
        .check(1, &["type may not be empty"]);
    repo.done(&["land", "-m", "feat: work"]);
    check_formatted(&repo);

    // Both run in the separate directory, too.
    repo.run_plan(&plan("More", &[execute("echo raw4 >> a.txt")]));
    let edited = format!("mine\n{}", repo.read("a.txt"));
    repo.write("a.txt", edited);
    repo.done(&["land", "-m", "fix: more"]);
    assert!(repo.git(&["show", "HEAD:a.txt"]).ends_with("FIXED4"));
    assert_eq!(repo.git(&["stash", "list"]), "");
    check_clean(&repo);
}

#[test]
fn git_lfs() {
    let repo = project(&[(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    )]);
    if !has(&repo, "git-lfs") {
        return;
    }
    run(&repo, "git", &["lfs", "install", "--local"]);
    repo.run_plan(&plan(
        "Work",
        &[execute("head -c 100000 /dev/zero > x.bin")],
    ));
    repo.done(&["land", "-m", "Land"]);
    assert!(
        repo.git(&["show", "HEAD:x.bin"])
            .starts_with("version https://git-lfs")
    );
    assert_eq!(status(&repo), " M own.txt\nA  staged.txt");
}

#[test]
fn git_crypt() {
    let repo = TestRepo::new().file(".gitattributes", "*.sec filter=git-crypt diff=git-crypt\n");
    if !has(&repo, "git-crypt") {
        return;
    }
    run(&repo, "git-crypt", &["init"]);
    repo.write("a.sec", "secret\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    for is_separate in [false, true] {
        repo.run_plan(&plan("Work", &[execute("echo more >> a.sec; echo x >> b")]));
        if is_separate {
            let edited = format!("mine\n{}", repo.read("b"));
            repo.write("b", edited);
        }
        repo.done(&["land", "-m", "Land"]);
        let mut git = repo.command("git");
        let git = git.current_dir(repo.path());
        let stored = git
            .args(["cat-file", "blob", "HEAD:a.sec"])
            .output()
            .unwrap();
        assert!(stored.stdout.starts_with(b"\0GITCRYPT"), "{stored:?}");
    }
}

/// A notebook with the output of its cells.
const NOTEBOOK: &str = r#"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "a1",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "42\n"
     ]
    }
   ],
   "source": [
    "print(41 + 1)"
   ]
  }
 ],
 "metadata": {
  "language_info": {
   "name": "python"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

#[test]
fn nbstripout() {
    let repo = TestRepo::new();
    if !has(&repo, "nbstripout") {
        return;
    }
    repo.write("a.txt", "1\n");
    repo.commit("init");
    run(
        &repo,
        "nbstripout",
        &["--install", "--attributes", ".gitattributes"],
    );
    repo.write("n.ipynb", NOTEBOOK);
    repo.commit("notebook");
    assert!(!repo.git(&["show", "HEAD:n.ipynb"]).contains("42"));
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "n.ipynb"]);
    hook(&repo, "pre-commit", "exit 0");
    let mut expected = NOTEBOOK.to_owned();
    for (number, is_separate) in [(2, false), (3, true)] {
        let (old, new) = (format!("41 + {}", number - 1), format!("41 + {number}"));
        repo.run_plan(&plan("Edit", &[edit("n.ipynb", &old, &new)]));
        expected = expected.replace(&old, &new);
        assert_eq!(repo.read("n.ipynb"), expected);
        if is_separate {
            expected = expected.replace("\"python\"", "\"python3\"");
            repo.write("n.ipynb", &expected);
        }
        repo.done(&["land", "-m", "Land"]);
        let landed = repo.git(&["show", "HEAD:n.ipynb"]);
        assert!(landed.contains(&new) && !landed.contains("42"), "{landed}");
        assert!(landed.contains("\"python\""), "{landed}");
        assert_eq!(repo.read("n.ipynb"), expected);
        let own = if is_separate { " M n.ipynb" } else { "" };
        assert_eq!(status(&repo), own);
    }
}

/// Writes a program that answers the question of an agent, and notes that it was asked.
fn asker(repo: &TestRepo, name: &str, script: &str) -> PathBuf {
    let path = repo.beside(name);
    let asked = repo.beside("asked").display().to_string();
    write_program(&path, &script.replace("ASKED", &asked));
    path
}

/// Lands with variables for the agent. Returns how that ended, and whether the agent asked.
fn land_signed(repo: &TestRepo, variables: &[(&str, PathBuf)]) -> (Output, bool) {
    let asked = repo.beside("asked");
    let _ = std::fs::remove_file(&asked);
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    command
        .current_dir(repo.path())
        .stdin(std::process::Stdio::null());
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    (Output::of(&mut command), asked.exists())
}

/// Checks that a landing is refused if the agent is, and signed otherwise. `set` chooses what the
/// agent is answered.
fn check_signing(repo: &TestRepo, variables: &[(&str, PathBuf)], set: &dyn Fn(bool)) {
    turn(repo);
    set(false);
    let before = everything(repo);
    let (out, is_asked) = land_signed(repo, variables);
    out.check(1, &["git made no commit"]);
    assert!(is_asked, "{out}");
    assert_eq!(everything(repo), before);

    set(true);
    let (out, is_asked) = land_signed(repo, variables);
    out.check(0, &[]);
    assert!(is_asked, "{out}");
    let mut verify = repo.command("git");
    verify
        .current_dir(repo.path())
        .args(["verify-commit", "HEAD"]);
    verify.envs(variables.iter().map(|(name, value)| (*name, value)));
    Output::of(&mut verify).check(0, &[]);
    assert_eq!(status(repo), " M own.txt\nA  staged.txt");
}

/// Speaks as much of the protocol of a pinentry as gpg-agent needs.
const PINENTRY: &str = "echo OK\nwhile read -r line; do case $line in\n\
    GETPIN*) touch ASKED; test -e ASKED.no && echo 'ERR 83886179 cancelled' || { echo D secret; echo OK; };;\n\
    BYE*) echo OK; exit;;\n*) echo OK;; esac; done";

#[test]
fn gpg_with_an_agent_that_asks_for_a_passphrase() {
    let repo = project(&[]);
    if !has(&repo, "gpg") || !has(&repo, "gpg-agent") {
        return;
    }
    let home = repo.beside("gnupg");
    std::fs::create_dir_all(&home).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&home, mode).unwrap();
    let pinentry = asker(&repo, "pinentry", PINENTRY);
    let settings = format!(
        "pinentry-program {}\nmax-cache-ttl 0\ndefault-cache-ttl 0\n",
        pinentry.display()
    );
    std::fs::write(home.join("gpg-agent.conf"), settings).unwrap();
    let mut gpg = repo.command("gpg");
    gpg.env("GNUPGHOME", &home)
        .args(["--batch", "--pinentry-mode", "loopback"]);
    gpg.args(["--passphrase", "secret", "--quick-gen-key"]);
    let made = Output::of(gpg.arg("Test <test@localhost>"));
    if made.code != 0 {
        skipped(&format!("gpg makes no key here: {made}"));
        return;
    }
    // The agent keeps the passphrase of a new key.
    let kill_agent = || {
        let mut kill = repo.command("gpgconf");
        let kill = kill.env("GNUPGHOME", &home).args(["--kill", "all"]);
        Output::of(kill);
    };
    kill_agent();
    repo.git(&["config", "commit.gpgSign", "true"]);
    let no = repo.beside("asked.no");
    let set = |is_yes: bool| match is_yes {
        true => std::fs::remove_file(&no).unwrap(),
        false => std::fs::write(&no, "").unwrap(),
    };
    check_signing(&repo, &[("GNUPGHOME", home.clone())], &set);
    kill_agent();
}

/// Makes a key, and lets git sign with it.
fn ssh_key(repo: &TestRepo, passphrase: &str) -> Option<PathBuf> {
    let key = repo.beside("key");
    let mut make = repo.command("ssh-keygen");
    make.args(["-q", "-t", "ed25519", "-C", "test", "-N", passphrase, "-f"]);
    if !make.arg(&key).status().is_ok_and(|made| made.success()) {
        skipped("`ssh-keygen` is not installed");
        return None;
    }
    let public = std::fs::read_to_string(repo.beside("key.pub")).unwrap();
    let signers = repo.beside("signers");
    std::fs::write(&signers, format!("test@localhost {public}")).unwrap();
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("user.signingKey", key.to_str().unwrap()),
        ("commit.gpgSign", "true"),
        ("gpg.ssh.allowedSignersFile", signers.to_str().unwrap()),
    ] {
        repo.git(&["config", name, value]);
    }
    Some(key)
}

#[test]
fn an_ssh_key_with_a_passphrase() {
    let repo = project(&[]);
    if ssh_key(&repo, "secret").is_none() {
        return;
    }
    let script = "touch ASKED; test -e ASKED.no && exit 1; echo secret";
    let askpass = asker(&repo, "askpass", script);
    let variables = [
        ("SSH_ASKPASS", askpass),
        ("SSH_ASKPASS_REQUIRE", PathBuf::from("force")),
    ];
    let no = repo.beside("asked.no");
    check_signing(&repo, &variables, &|is_yes| match is_yes {
        true => std::fs::remove_file(&no).unwrap(),
        false => std::fs::write(&no, "").unwrap(),
    });
}

#[test]
fn an_ssh_agent_that_asks_before_each_use() {
    let repo = project(&[]);
    let Some(key) = ssh_key(&repo, "") else {
        return;
    };
    let askpass = asker(&repo, "askpass", "touch ASKED; ! test -e ASKED.no");
    let socket = repo.beside("agent");
    let mut agent = repo.command("ssh-agent");
    agent
        .env("SSH_ASKPASS", &askpass)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("DISPLAY", ":none");
    agent.stdout(std::process::Stdio::null());
    let Ok(mut agent) = agent.arg("-D").arg("-a").arg(&socket).spawn() else {
        skipped("`ssh-agent` is not installed");
        return;
    };
    let start = std::time::Instant::now();
    while !socket.exists() && start.elapsed().as_secs() < 5 {
        std::thread::yield_now();
    }
    let mut add = repo.command("ssh-add");
    add.env("SSH_AUTH_SOCK", &socket).args(["-q", "-c"]);
    Output::of(add.arg(&key)).check(0, &[]);
    // The agent alone has it.
    std::fs::remove_file(&key).unwrap();
    let no = repo.beside("asked.no");
    let public = repo.beside("key.pub");
    repo.git(&["config", "user.signingKey", public.to_str().unwrap()]);
    check_signing(
        &repo,
        &[("SSH_AUTH_SOCK", socket)],
        &|is_yes| match is_yes {
            true => std::fs::remove_file(&no).unwrap(),
            false => std::fs::write(&no, "").unwrap(),
        },
    );
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn gpg() {
    let repo = project(&[]);
    if !has(&repo, "gpg") {
        return;
    }
    let home = repo.beside("gnupg");
    std::fs::create_dir_all(&home).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&home, mode).unwrap();
    let gpg = |args: &[&str]| {
        let mut gpg = repo.command("gpg");
        Output::of(gpg.env("GNUPGHOME", &home).args(args))
    };
    let key = [
        "--batch",
        "--passphrase",
        "",
        "--quick-gen-key",
        "Test <test@localhost>",
    ];
    if gpg(&key).code != 0 {
        skipped("gpg makes no key here");
        return;
    }
    repo.git(&["config", "commit.gpgSign", "true"]);
    turn(&repo);
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    Output::of(command.current_dir(repo.path()).env("GNUPGHOME", &home)).check(0, &[]);
    let mut verify = repo.command("git");
    let verify = verify.current_dir(repo.path()).env("GNUPGHOME", &home);
    Output::of(verify.args(["verify-commit", "HEAD"])).check(0, &[]);
    let mut kill = repo.command("gpgconf");
    let _ = kill
        .env("GNUPGHOME", &home)
        .args(["--kill", "all"])
        .output();
}
