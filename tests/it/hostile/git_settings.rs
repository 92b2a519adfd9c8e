//! Environment variables, settings and files that control git. None of them can run a program,
//! redirect objects or make a snapshot differ from the files.

use std::os::unix::fs::PermissionsExt;

use super::ground::{Ground, create, plan, run, words};
use crate::support::{Output, TestRepo, sample};

/// Creates a program outside of the project that leaves a file when it runs.
fn trap(ground: &Ground) -> String {
    let program = ground.repo.beside("trap.sh");
    std::fs::write(
        &program,
        format!(
            "#!/bin/sh\necho ran >> {}\ncat\n",
            ground.repo.beside("sprung").display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    program.display().to_string()
}

/// Executes a turn that creates a file and runs a command, and then other commands, with these
/// variables set. Returns what went wrong.
fn turn(ground: &Ground, number: usize, variables: &[(&str, &str)], staged: &str) -> Vec<String> {
    let (name, others) = (format!("n{number}.txt"), ground.others());
    std::fs::write(
        ground.repo.beside("plan.md"),
        plan(&(create(&format!("[{name}](/{name})")) + &run("git status > seen.txt"))),
    )
    .unwrap();
    let mut wrong = Vec::new();
    // The test's own git, which obeys the settings, can have run the trap.
    let _ = std::fs::remove_file(ground.repo.beside("sprung"));
    let output = ground.teddy_with(&["execute", "../plan.md", "-y", "--no-replan"], variables);
    if !output.status.success() {
        wrong.push(words(&output));
    }
    let commands: [&[&[&str]]; 3] = [
        &[&["status"], &["diff"]],
        &[&["show"], &["log"]],
        &[&["doctor", "--fix"], &["undo"], &["redo"]],
    ];
    // All of them, or a third: another one after each turn.
    for args in sample(commands, 3, number).flatten().copied() {
        let output = ground.teddy_with(args, variables);
        if !output.status.success() {
            wrong.push(format!("{args:?}: {}", words(&output)));
        }
    }
    if ground.repo.beside("sprung").exists() {
        wrong.push("a program ran".to_owned());
    }
    if ground.others() != others || staged_files(ground) != staged {
        wrong.push("something of the user's changed".to_owned());
    }
    // The turn is complete if read without the variables.
    let names = || {
        ground
            .repo
            .git(&["ls-tree", "--name-only", "teddy/sessions/s^2", &name])
    };
    if wrong.is_empty() && names() != name {
        wrong.push(format!("`{name}` is not in the turn"));
    }
    wrong
}

/// Returns what the index of the user lists.
fn staged_files(ground: &Ground) -> String {
    ground.repo.git(&["ls-files", "-s"])
}

#[test]
fn variables_of_git_lead_nowhere() {
    let ground = Ground::new();
    let trap = trap(&ground);
    let outside = ground.outside().display().to_string();
    let config = ground.outside().join("config");
    std::fs::write(
        &config,
        format!(
            "[core]\n\tfsmonitor = {trap}\n\thooksPath = {outside}\n[alias]\n\tstatus = !{trap}\n"
        ),
    )
    .unwrap();
    let (config, index, top) = (
        config.display().to_string(),
        format!("{outside}/index"),
        ground.repo.path().display().to_string(),
    );
    let quoted = format!("'core.fsmonitor'='{trap}'");
    let users_index = format!("{top}/.git/index");
    let rows: &[&[(&str, &str)]] = &[
        &[("GIT_INDEX_FILE", &index)],
        // `git commit` sets these for its hooks.
        &[("GIT_INDEX_FILE", &users_index), ("GIT_DIR", ".git")],
        &[
            ("GIT_INDEX_FILE", &users_index),
            ("GIT_WORK_TREE", &top),
            ("GIT_DIR", ".git"),
        ],
        &[("GIT_OBJECT_DIRECTORY", &outside)],
        &[("GIT_ALTERNATE_OBJECT_DIRECTORIES", &outside)],
        &[("GIT_NAMESPACE", "evil")],
        &[("GIT_COMMON_DIR", &outside)],
        &[("GIT_CONFIG_PARAMETERS", &quoted)],
        &[("GIT_CONFIG_GLOBAL", &config)],
        &[("GIT_CONFIG_SYSTEM", &config), ("GIT_CONFIG_NOSYSTEM", "0")],
        &[("GIT_EXEC_PATH", &outside)],
        &[("GIT_TEMPLATE_DIR", &outside)],
        &[
            ("GIT_PAGER", &trap),
            ("PAGER", &trap),
            ("GIT_EDITOR", &trap),
            ("GIT_ASKPASS", &trap),
        ],
        &[("GIT_TRACE", &index), ("GIT_TRACE2", &index)],
        &[("GIT_REPLACE_REF_BASE", "refs/evil/")],
        &[
            ("GIT_ATTR_SOURCE", "HEAD"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_GLOB_PATHSPECS", "1"),
        ],
        &[
            ("GIT_DEFAULT_HASH", "sha256"),
            ("GIT_DEFAULT_REF_FORMAT", "reftable"),
        ],
        &[
            ("GIT_PREFIX", "../../"),
            ("GIT_QUARANTINE_PATH", &outside),
            ("GIT_CEILING_DIRECTORIES", &top),
        ],
    ];
    let (mut wrong, staged) = (Vec::new(), staged_files(&ground));
    for (number, variables) in sample(rows.iter().enumerate(), 2, 0) {
        wrong.extend(
            turn(&ground, number, variables, &staged)
                .into_iter()
                .map(|what| format!("{variables:?}: {what}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
}

/// Settings in the repository: keys and values. `TRAP` is a program, `OUT` a directory outside of
/// the project.
const SETTINGS: &[(&str, &[(&str, &str)])] = &[
    ("an included file", &[("include.path", "OUT/config")]),
    (
        "aliases named like our calls",
        &[
            ("alias.status", "!TRAP"),
            ("alias.repack", "!TRAP"),
            ("alias.rev-list", "!TRAP"),
        ],
    ),
    (
        "a filter that nobody trusted",
        &[
            ("filter.evil.clean", "TRAP"),
            ("filter.evil.required", "false"),
        ],
    ),
    (
        "diffs and merges",
        &[
            ("diff.external", "TRAP"),
            ("merge.evil.driver", "TRAP"),
            ("diff.evil.command", "TRAP"),
            ("diff.evil.textconv", "TRAP"),
        ],
    ),
    (
        "pagers, editors, browsers",
        &[
            ("core.pager", "TRAP"),
            ("core.editor", "TRAP"),
            ("pager.log", "TRAP"),
            ("core.askPass", "TRAP"),
        ],
    ),
    (
        "hooks elsewhere",
        &[("core.hooksPath", "OUT"), ("core.fsmonitor", "TRAP")],
    ),
    (
        "ssh and proxies",
        &[
            ("core.sshCommand", "TRAP"),
            ("core.gitProxy", "TRAP"),
            ("credential.helper", "!TRAP"),
        ],
    ),
    (
        "signing",
        &[
            ("gpg.program", "TRAP"),
            ("gpg.ssh.program", "TRAP"),
            ("commit.gpgSign", "true"),
            ("tag.gpgSign", "true"),
        ],
    ),
    (
        "an attributes file elsewhere",
        &[
            ("core.attributesFile", "OUT/attributes"),
            ("core.excludesFile", "OUT/excludes"),
        ],
    ),
    (
        "maintenance",
        &[
            ("gc.auto", "1"),
            ("maintenance.auto", "true"),
            ("gc.recentObjectsHook", "TRAP"),
            ("gc.pruneExpire", "now"),
        ],
    ),
    (
        "objects that are forgotten at once",
        &[
            ("gc.reflogExpire", "now"),
            ("gc.reflogExpireUnreachable", "now"),
            ("core.logAllRefUpdates", "false"),
        ],
    ),
    (
        "untracked files hidden",
        &[
            ("status.showUntrackedFiles", "no"),
            ("core.untrackedCache", "true"),
        ],
    ),
    (
        "an odd index",
        &[
            ("index.version", "4"),
            ("core.splitIndex", "true"),
            ("feature.manyFiles", "true"),
        ],
    ),
    (
        "stat data not to be trusted",
        &[("core.trustctime", "false"), ("core.checkStat", "minimal")],
    ),
    (
        "settings of a worktree",
        &[
            ("extensions.worktreeConfig", "true"),
            ("core.sparseCheckout", "false"),
        ],
    ),
];

#[test]
fn settings_of_the_repository_run_nothing() {
    let mut wrong = Vec::new();
    let ground = Ground::new();
    let trap = trap(&ground);
    let outside = ground.outside().display().to_string();
    std::fs::write(
        ground.outside().join("config"),
        format!("[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n[alias]\n\tstatus = !{trap}\n"),
    )
    .unwrap();
    std::fs::write(
        ground.outside().join("attributes"),
        "* diff=evil merge=evil\n",
    )
    .unwrap();
    std::fs::write(ground.outside().join("excludes"), "excluded\n").unwrap();
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        std::fs::copy(&trap, ground.outside().join(hook)).unwrap();
    }
    ground
        .repo
        .write(".gitattributes", "*.evil diff=evil merge=evil\n");
    let staged = staged_files(&ground);
    for (number, (name, settings)) in sample(SETTINGS.iter().enumerate(), 2, 0) {
        let value = |value: &str| value.replace("TRAP", &trap).replace("OUT", &outside);
        settings
            .iter()
            .for_each(|(key, text)| drop(ground.repo.git(&["config", key, &value(text)])));
        wrong.extend(
            turn(&ground, number, &[], &staged)
                .into_iter()
                .map(|what| format!("{name}: {what}")),
        );
        settings
            .iter()
            .for_each(|(key, _)| drop(ground.repo.git(&["config", "--unset-all", key])));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    ground.repo.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_sparse_checkout_loses_nothing_of_what_it_leaves_out() {
    let ground = Ground::new();
    ground.repo.put("left/out.txt", "out\n");
    ground.repo.commit("more");
    ground.repo.git(&["sparse-checkout", "set", "src"]);
    assert!(!ground.repo.path().join("left").exists());
    let tried = ground.execute(plan(&create("[new.txt](/new.txt)")));
    assert_eq!(tried.code, 0, "{}", tried.words);
    let names = ground
        .repo
        .git(&["ls-tree", "-r", "--name-only", "teddy/sessions/s^2"]);
    assert!(
        names.contains("left/out.txt") && names.contains("new.txt"),
        "{names}"
    );
    ground.ok(&["undo"]);
    assert!(
        !ground.repo.path().join("left").exists(),
        "what is left out is not written"
    );
    assert_eq!(ground.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn files_that_git_obeys_are_only_files() {
    let ground = Ground::new();
    let trap = trap(&ground);
    let long = "a/".repeat(2000);
    for (path, text) in [
        (
            ".gitattributes",
            "* filter=evil diff=evil merge=evil working-tree-encoding=UTF-99 text eol=crlf ident export-subst\n",
        ),
        (".gitattributes", "[attr]evil filter=evil\n* evil\n"),
        (".gitattributes", long.as_str()),
        (".gitignore", "*\n!*/\n!**\n"),
        (".gitignore", "[[[[[\n\\\n!!\n/\n"),
        (
            ".gitmodules",
            "[submodule \"../../x\"]\n\tpath = ../../x\n\turl = ext::sh -c TRAP\n\tupdate = !TRAP\n",
        ),
        (
            ".gitmodules",
            "[include]\n\tpath = /etc/passwd\n[core]\n\tfsmonitor = TRAP\n",
        ),
        (".mailmap", "Evil <x> <test@localhost>\n"),
        (
            ".worktreeinclude",
            "../outside\n/etc/passwd\n.git/config\n~/.ssh\n",
        ),
        (".teddyignore", "[[[[\n!\n"),
    ] {
        ground.repo.write(path, text.replace("TRAP", &trap));
        let others = ground.others();
        let tried = ground.execute(plan(&(create("[new.evil](/new.evil)") + &run("true"))));
        assert!(
            matches!(tried.code, 0 | 1),
            "{path} {:?}: {}",
            &text[..20],
            tried.words
        );
        assert!(
            !ground.repo.beside("sprung").exists() && ground.others() == others,
            "{path}: {}",
            tried.words
        );
        ground.teddy(&["undo", "--files-only"]);
        ground.repo.remove(path);
        let _ = std::fs::remove_file(ground.repo.path().join("new.evil"));
    }
}

/// Runs a command as a user whose name is in git's configuration alone.
fn without_name(
    repo: &crate::support::TestRepo,
    mut command: std::process::Command,
) -> crate::support::Output {
    for variable in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"] {
        command.env_remove(variable);
    }
    crate::support::Output::of(command.current_dir(repo.path()))
}

#[test]
fn a_name_that_no_commit_can_have_is_cleaned_as_by_git() {
    for (name, email) in [
        ("Ada <Lovelace>", "<ada@example.org>"),
        (" \"Ada\\'; ", "ada@\nexample.org"),
        ("Ada\nLovelace", " ,ada@example.org. "),
        (".Ada.", ""),
        ("\u{1}Ada\u{7f}\u{e9}", "a>b"),
    ] {
        let repo = crate::support::TestRepo::new().file("a.txt", "a\n");
        repo.commit("init");
        repo.git(&["config", "user.name", name]);
        repo.git(&["config", "user.email", email]);
        without_name(&repo, repo.teddy_command(&["new", "demo"])).check(0, &[]);
        let mut git = repo.command("git");
        git.args(["commit", "-q", "--allow-empty", "-m", "x"]);
        without_name(&repo, git).check(0, &[]);

        let author = |commit: &str| repo.git(&["log", "-1", "--format=%an|%ae", commit]);
        assert_eq!(author("teddy/sessions/demo"), author("HEAD"), "{name:?}");
        repo.git(&["fsck", "--strict"]);
    }

    let repo = crate::support::TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.git(&["config", "user.name", " <>;"]);
    without_name(&repo, repo.teddy_command(&["new", "demo"])).check(0, &[]);
    let author = repo.git(&["log", "-1", "--format=%an", "teddy/sessions/demo"]);
    assert_eq!(author, "TeDDy");
}

/// Bug: `git -c` did not reach TeDDy, which documents that it does.
#[test]
fn settings_of_one_call_of_git_reach_teddy() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.write("x.mine", "mine\n");
    repo.write("../rules", "*.mine\n");
    let call = |setting: &str, args: &str| {
        let mut git = repo.command("git");
        let alias = format!("alias.t=!'{}' {args}", env!("CARGO_BIN_EXE_teddy"));
        git.current_dir(repo.path())
            .args(["-c", setting, "-c", &alias, "t"])
            .env("TEDDY_CONFIG", "/dev/null")
            .env("TEDDY_DISCOVERY", "off");
        Output::of(&mut git)
    };
    let rules = format!("core.excludesFile={}", repo.beside("rules").display());
    let ignored = call(&rules, "status");
    ignored.check(0, &["No file changed since HEAD"]);
    let wrong = call("teddy.replan.max=foo", "status");
    let message = "git config replan.max: must be a whole number that is not negative, not `foo`";
    wrong.check(1, &[message]);
}
