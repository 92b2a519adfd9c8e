//! Hostile repositories: settings, state, refs, hooks and filters. TeDDy runs nothing of them and
//! sends nothing anywhere.

use std::os::unix::fs::PermissionsExt;

use super::ground::{Ground, create, plan, run, words};
use crate::support::{TestRepo, sample};

/// Creates a program outside of the project that leaves a file when it runs.
fn trap(ground: &Ground) -> String {
    let program = ground.repo.beside("trap.sh");
    std::fs::write(
        &program,
        format!(
            "#!/bin/sh\necho ran >> {}\n",
            ground.repo.beside("sprung").display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    program.display().to_string()
}

fn sprung(ground: &Ground) -> bool {
    ground.repo.beside("sprung").exists()
}

/// Settings that an untrusted repository cannot make, and the key in the warning. `TRAP` is a
/// program. Each second one is in the sample.
const SETTINGS: &[(&str, &str)] = &[
    ("worktree: {setup: TRAP}", "worktree.setup"),
    ("preview_command: TRAP", "preview_command"),
    ("worktree: {copy: ['ignored']}", "worktree.copy"),
    ("worktree: {link: ['../outside']}", "worktree.link"),
    ("worktree: {root: '../outside'}", "worktree.root"),
    (
        "model: evil\nmodels: {evil: {kind: command, run: [TRAP]}}",
        "models.evil",
    ),
    ("model: 'command:TRAP'", "model"),
    (
        "models: {gpt: {base_url: 'http://127.0.0.1:1'}}",
        "models.gpt",
    ),
    ("models: {gpt: {api_key_command: [TRAP]}}", "models.gpt"),
    ("models: {gpt: {api_key_env: HOME}}", "models.gpt"),
    ("execute: {shell: TRAP}", "execute.shell"),
    ("models: {gpt: {headers: {x: y}}}", "models.gpt"),
    ("execute: {sandbox: off}", "execute.sandbox"),
    ("execute: {network: true}", "execute.network"),
    ("execute: {writable: ['~/']}", "execute.writable"),
    ("execute: {keep_env: [OPENAI_API_KEY]}", "execute.keep_env"),
    ("execute: {timeout: 999999}", "execute.timeout"),
    ("web: {allow_hosts: [localhost]}", "web.allow_hosts"),
    (
        "research: {engine: command, run: [TRAP]}",
        "research.engine",
    ),
    (
        "research: {base_url: 'http://127.0.0.1:1'}",
        "research.base_url",
    ),
    ("snapshot: {exclude: ['*']}", "snapshot.exclude"),
    ("snapshot: {max_file_size: 1}", "snapshot.max_file_size"),
    ("snapshot: {max_new_files: 1}", "snapshot.max_new_files"),
    ("snapshot: {include: ['.env']}", "snapshot.include"),
    ("limits: {cost: 1000}", "limits.cost"),
    ("on_failure: rollback", "on_failure"),
    ("pipeline: evil", "pipeline"),
    ("'worktree.setup': TRAP", "worktree.setup"),
    ("unknown: 1", "unknown"),
];

#[test]
fn an_untrusted_repository_decides_nothing() {
    let ground = Ground::new();
    let trap = trap(&ground);
    let mut wrong = Vec::new();
    for (text, key) in sample(SETTINGS, 2, 0) {
        ground
            .repo
            .put(".teddy/config.yaml", text.replace("TRAP", &trap));
        let tried = ground.execute(plan(&run("echo $PWD > pwd.txt")));
        let line = tried
            .words
            .lines()
            .filter(|line| line.contains("settings of this repository are ignored"))
            .collect::<Vec<_>>();
        if tried.code != 0
            || line.len() != 1
            || !line[0].contains(key)
            || sprung(&ground)
            || ground.repo.read("pwd.txt").contains("outside")
        {
            wrong.push(format!("{text}: {}", tried.words));
        }
        // A plan reads settings of models, and other settings as an execution does.
        if !crate::WORLDS && !text.contains("model") && !text.contains("pipeline") {
            continue;
        }
        let asked = words(&ground.teddy(&["plan", "-m", "x"]));
        if !asked.contains("no model is configured") || sprung(&ground) {
            wrong.push(format!("{text}: {asked}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_bomb_of_a_configuration_is_refused_at_once() {
    let ground = Ground::new();
    let laughs: String = (0..20)
        .map(|n| {
            format!(
                "a{n}: &a{n} [{}]\n",
                format!("*a{},", n - 1).repeat(if n > 0 { 9 } else { 0 })
            )
        })
        .collect();
    for text in [
        "[".repeat(60_000),
        "{a: ".repeat(15_000),
        "- ".repeat(30_000),
        laughs,
        "x".repeat(70_000),
        "a: !!python/object x".to_owned(),
        "\u{0}".to_owned(),
    ] {
        ground.repo.put(".teddy/config.yaml", &text);
        let start = std::time::Instant::now();
        let output = ground.teddy(&["status"]);
        assert!(start.elapsed().as_secs() < 10, "{:?}", &text[..20]);
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{}",
            words(&output)
        );
    }
    ground.repo.remove(".teddy/config.yaml");
    std::os::unix::fs::symlink(
        ground.outside().join("canary"),
        ground.repo.path().join(".teddy/config.yaml"),
    )
    .unwrap();
    assert!(!words(&ground.teddy(&["status"])).contains("canary"));
}

#[test]
fn env_files_and_the_environment_of_git_are_not_read() {
    let ground = Ground::new();
    let trap = trap(&ground);
    ground.repo.put(
        ".env",
        format!("TEDDY_CONFIG={trap}\nOPENAI_BASE_URL=http://127.0.0.1:1\n"),
    );
    ground.repo.put("git", format!("#!/bin/sh\nexec {trap}\n"));
    std::fs::set_permissions(
        ground.repo.path().join("git"),
        PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let path = format!(
        ".:{}:{}",
        ground.repo.path().display(),
        teddy::host::env::var("PATH").unwrap()
    );
    let fsmonitor = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_CONFIG_VALUE_0", trap.as_str()),
        ("PATH", &path),
    ];
    for variables in [
        &[("PATH", path.as_str())][..],
        &fsmonitor,
        &[("GIT_EXTERNAL_DIFF", &trap)],
        &[("GIT_SSH_COMMAND", &trap)],
    ] {
        for args in [
            &["status"][..],
            &["log"],
            &["diff"],
            &["execute", "../plan.md", "-y", "--no-replan"],
            &["undo"],
        ] {
            std::fs::write(
                ground.repo.beside("plan.md"),
                plan(&create("[new.txt](/new.txt)")),
            )
            .unwrap();
            ground.teddy_with(args, variables);
            assert!(!sprung(&ground), "{variables:?} {args:?}");
        }
    }
}

#[test]
fn hooks_and_programs_of_the_repository_do_not_run() {
    let ground = Ground::new();
    let trap = trap(&ground);
    for hook in [
        "post-checkout",
        "reference-transaction",
        "pre-commit",
        "post-commit",
        "post-index-change",
        "pre-auto-gc",
        "post-merge",
        "commit-msg",
    ] {
        std::fs::copy(&trap, ground.repo.path().join(".git/hooks").join(hook)).unwrap();
    }
    for key in [
        "core.fsmonitor",
        "core.editor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "gpg.program",
        "core.hooksPath",
        "diff.x.textconv",
    ] {
        ground.repo.git(&["config", key, &trap]);
    }
    ground.repo.git(&["config", "commit.gpgSign", "true"]);
    ground
        .repo
        .put(".gitattributes", "* diff=x filter=evil merge=evil\n")
        .put(
            ".gitmodules",
            format!("[submodule \"x\"]\n\tpath = x\n\turl = ext::{trap}\n\tupdate = !{trap}\n"),
        );
    let _ = std::fs::remove_file(ground.repo.beside("sprung"));
    let tried = ground.execute(plan(&(create("[new.txt](/new.txt)") + &run("true"))));
    assert_eq!(tried.code, 0, "{}", tried.words);
    for args in [
        &["status"][..],
        &["diff"],
        &["log"],
        &["show"],
        &["undo"],
        &["redo"],
        &["branch", "@", "b"],
        &["doctor", "--fix"],
        &["export", "../out"],
    ] {
        let output = ground.teddy(args);
        assert!(output.status.success(), "{args:?}: {}", words(&output));
        assert!(!sprung(&ground), "{args:?} ran something of the repository");
    }
}

#[test]
fn a_plan_that_came_with_refs_does_not_run() {
    let ground = Ground::new();
    ground.repo.write("../plan.md", plan(&run("touch ran")));
    ground.ok(&["plan", "--from", "../plan.md", "-m", "x"]);
    let draft = ground.repo.git(&["rev-parse", "refs/teddy/drafts/s"]);
    // A mirror clone has the refs, and nothing else of the git directory.
    let other = Ground::new();
    let from = ground.repo.path().display().to_string();
    other
        .repo
        .git(&["fetch", "-q", &from, "+refs/teddy/*:refs/teddy/*"]);
    for args in [
        &["execute", "-y"][..],
        &["resume", "-y"],
        &["resume", "--yolo"],
        &["execute"],
    ] {
        let output = other.teddy(args);
        assert!(
            !output.status.success() && !words(&output).contains("succeeded"),
            "{args:?}: {}",
            words(&output)
        );
    }
    let said = words(&other.teddy(&["execute", "-y"]));
    assert!(
        said.contains("is not recorded as yours") && said.contains("teddy switch --adopt s"),
        "{said}"
    );
    assert_eq!(other.repo.git(&["rev-parse", "refs/teddy/drafts/s"]), draft);
    assert!(other.ok(&["switch", "--adopt", "s"]).contains("touch ran"));
    assert!(other.teddy(&["execute", "-y"]).status.success());
    assert!(other.repo.path().join("ran").exists());
}

/// Commits a turn whose tree has these entries.
fn planted(ground: &Ground, number: &str, tree: &[(&str, &str)], parents: &[&str]) -> String {
    let id = "0198c0de-0000-7000-8000-000000000001";
    let meta = format!(
        "schema: 1\nturn_id: {id}\nparent_turn_id: {id}\ncaller_turn_id: {id}\nnumber: {number}\nstatus: executed\nagent: developer\n"
    );
    let line = |(name, content): &(&str, &str)| {
        let file = ground.repo.beside("blob");
        std::fs::write(&file, content).unwrap();
        format!(
            "100644 blob {}\t{name}\n",
            ground
                .repo
                .git(&["hash-object", "-w", file.to_str().unwrap()])
        )
    };
    let next = format!("schema: 1\nturn_id: {id}\nparent_turn_id: {id}\nagent: developer\n");
    let next = [
        ("meta.yaml", next.as_str()),
        ("system_prompt.xml", "<x/>\n"),
        ("turn.context", ""),
    ];
    let next = mktree(ground, &next.iter().map(line).collect::<String>());
    let files = [("meta.yaml", meta.as_str()), ("report.md", "report\n")];
    let lines: String = files.iter().chain(tree).map(line).collect();
    let tree = mktree(ground, &format!("{lines}40000 tree {next}\tnext\n"));
    let parents: Vec<&str> = parents.iter().flat_map(|parent| ["-p", *parent]).collect();
    ground.repo.git(
        &[
            &["commit-tree", &tree, "-m", "planted\n\nTeddy-Session: s"],
            parents.as_slice(),
        ]
        .concat(),
    )
}

/// Writes a tree object with any names, which `git mktree` would refuse.
fn mktree(ground: &Ground, lines: &str) -> String {
    let mut raw = Vec::new();
    let mut sorted: Vec<_> = lines.lines().collect();
    sorted.sort_by_key(|line| line.split('\t').nth(1).unwrap().to_owned());
    for line in sorted {
        let (head, name) = line.split_once('\t').unwrap();
        let mut words = head.split(' ');
        let (mode, id) = (words.next().unwrap(), words.nth(1).unwrap());
        raw.extend(format!("{} {name}\0", mode.trim_start_matches('0')).bytes());
        raw.extend((0..20).map(|n| u8::from_str_radix(&id[2 * n..2 * n + 2], 16).unwrap()));
    }
    let file = ground.repo.beside("tree");
    std::fs::write(&file, raw).unwrap();
    ground.repo.git(&[
        "hash-object",
        "-w",
        "-t",
        "tree",
        "--literally",
        file.to_str().unwrap(),
    ])
}

#[test]
fn turns_that_were_made_up_break_nothing() {
    let ground = Ground::new();
    let head = ground.repo.git(&["rev-parse", "HEAD"]);
    let start = planted(&ground, "0", &[], &[]);
    let bomb = "[".repeat(500_000);
    let plain = planted(&ground, "1", &[], &[&start, &head]);
    ground
        .repo
        .git(&["update-ref", "refs/teddy/sessions/s", &plain]);
    assert!(
        ground.ok(&["log"]).contains("planted"),
        "what is made up well is read"
    );
    for (name, commit) in [
        (
            "a turn that called itself",
            planted(&ground, "1", &[], &[&start, &head]),
        ),
        (
            "a number without end",
            planted(&ground, "18446744073709551615", &[], &[&start, &head]),
        ),
        (
            "a number below zero",
            planted(&ground, "-1", &[], &[&start, &head]),
        ),
        (
            "a bomb of a record",
            planted(&ground, &bomb, &[], &[&start, &head]),
        ),
        ("the user's own commit", head.clone()),
    ] {
        ground
            .repo
            .git(&["update-ref", "refs/teddy/sessions/s", &commit]);
        for args in [
            &["log"][..],
            &["sessions"],
            &["status"],
            &["show"],
            &["diff"],
            &["context"],
            &["undo"],
            &["restore", "@"],
            &["switch", "--adopt"],
            &["plan", "-m", "x"],
        ] {
            let output = ground.teddy(args);
            assert!(
                output.status.code().is_some_and(|code| code < 5),
                "{name}: {args:?} {}",
                words(&output)
            );
        }
    }
}

#[test]
fn names_of_a_made_up_tree_lead_nowhere() {
    let ground = Ground::new();
    let start = planted(&ground, "0", &[], &[]);
    let head = ground.repo.git(&["rev-parse", "HEAD"]);
    let blob = ground.repo.git(&["rev-parse", "HEAD:a.txt"]);
    let files = mktree(&ground, &format!("100644 blob {blob}\tplain.txt\n"));
    let files = ground
        .repo
        .git(&["commit-tree", &files, "-p", &head, "-m", "files"]);
    let plain = planted(&ground, "1", &[], &[&start, &files]);
    ground
        .repo
        .git(&["update-ref", "refs/teddy/sessions/s", &plain]);
    ground.ok(&["restore", "@", "--exact", "-y"]);
    assert!(
        ground.repo.path().join("plain.txt").exists(),
        "an ordinary name is written"
    );
    let names = [
        "..",
        ".git",
        ".GIT",
        "git~1",
        "../evil",
        "a/../../evil",
        ".git/hooks/pre-commit",
        "/evil",
        ".",
    ];
    std::fs::write(ground.repo.beside("plan.md"), plan(&run("true"))).unwrap();
    for (number, name) in names.into_iter().enumerate() {
        let commit = planted(&ground, "1", &[(name, "evil")], &[&start, &head]);
        ground
            .repo
            .git(&["update-ref", "refs/teddy/sessions/s", &commit]);
        let (before, others) = (ground.state(), ground.others());
        ground.teddy(&["export", "../outside/out"]);
        let _ = std::fs::remove_dir_all(ground.outside().join("out"));
        assert!(
            ground.state() == before,
            "export of {name:?} changed something"
        );
        // The same name in the files of a turn, at the top and in a directory.
        let inner = mktree(&ground, &format!("100644 blob {blob}\t{name}\n"));
        let trees = [
            inner.clone(),
            mktree(&ground, &format!("40000 tree {inner}\tsrc\n")),
            mktree(&ground, &format!("40000 tree {inner}\t{name}\n")),
        ];
        let calls = [
            &["restore", "@", "--exact", "-y"][..],
            &["restore", "@", "--theirs"],
            &["execute", "../plan.md", "-y", "--no-replan"],
        ];
        let cases = trees.iter().flat_map(|tree| calls.map(|args| (tree, args)));
        // Each call with each tree, or one pair: another one for each name.
        for (tree, args) in sample(cases, 9, number) {
            let files = ground
                .repo
                .git(&["commit-tree", tree, "-p", &head, "-m", "files"]);
            let commit = planted(&ground, "1", &[], &[&start, &files]);
            ground
                .repo
                .git(&["update-ref", "refs/teddy/sessions/s", &commit]);
            let output = ground.teddy(args);
            assert!(
                output.status.code().is_some_and(|code| code < 5),
                "{name:?} {args:?}: {}",
                words(&output)
            );
            assert!(
                ground.others() == others,
                "{args:?} with {name:?} changed something: {}",
                words(&output)
            );
            ground.repo.git(&["checkout", "-qf", "HEAD", "--", "."]);
        }
    }
}

#[test]
fn a_journal_that_was_planted_reaches_no_other_repository() {
    let ground = Ground::new();
    let other = Ground::new();
    let tree = ground.repo.git(&["rev-parse", "HEAD^{tree}"]);
    let tip = ground.repo.git(&["rev-parse", "refs/teddy/sessions/s"]);
    for workspace in [
        other.repo.path(),
        "/".into(),
        ground.outside(),
        "../..".into(),
    ] {
        let empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        let pending = serde_json::json!({ "schema": 1, "operation": "../../x", "session": "s", "commit": tip, "workspace": workspace, "from": tree, "to": empty });
        std::fs::write(
            ground.repo.path().join(".git/teddy/pending.json"),
            pending.to_string(),
        )
        .unwrap();
        let before = (ground.state(), other.state());
        let output = ground.teddy(&["doctor", "--fix"]);
        assert!(
            output.status.code().is_some_and(|code| code < 5),
            "{}",
            words(&output)
        );
        assert!(
            (ground.state(), other.state()) == before,
            "{}: {}",
            workspace.display(),
            words(&output)
        );
    }
}

#[test]
fn refs_of_odd_names_hide_no_session() {
    let ground = Ground::new();
    let head = ground.repo.git(&["rev-parse", "HEAD"]);
    for name in [
        "refs/teddy/sessions/Évil",
        "refs/teddy/sessions/-rf",
        "refs/teddy/sessions/a/b/c",
        "refs/teddy/sessions/x;y",
        "refs/teddy/drafts/$(x)",
        "refs/teddy/sessions/change",
    ] {
        let file = ground.repo.path().join(".git").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{head}\n")).unwrap();
    }
    let output = ground.teddy(&["sessions"]);
    assert!(
        output.status.success() && words(&output).contains("* s "),
        "{}",
        words(&output)
    );
    for args in [
        &["-s", "../../HEAD", "log"][..],
        &["-s", "a/b/c", "log"],
        &["switch", "-rf"],
        &["switch", "x;y"],
        &["branch", "@", "../x"],
        &["new", "../x"],
    ] {
        assert!(!ground.teddy(args).status.success(), "{args:?}");
    }
}

#[test]
fn an_export_goes_through_no_link_to_a_directory_that_nobody_named() {
    let ground = Ground::new();
    let tip = ground.repo.git(&["rev-parse", "refs/teddy/sessions/s"]);
    ground
        .repo
        .git(&["update-ref", "refs/teddy/remotes/origin/s", &tip]);
    for name in ["s", "origin"] {
        std::os::unix::fs::symlink(ground.outside(), ground.repo.path().join(name)).unwrap();
    }
    let before = ground.state();
    for session in ["s", "origin/s"] {
        let output = ground.teddy(&["export", "-s", session]);
        let said = words(&output);
        assert_eq!(output.status.code(), Some(1), "{session}: {said}");
        assert!(said.contains("name another directory"), "{session}: {said}");
        assert!(ground.state() == before, "export of {session} wrote");
    }
}

#[test]
fn a_link_among_our_directories_is_not_followed() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let teddy = repo.path().join(".git/teddy");
    let outside = repo.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    for name in ["main", "demo"] {
        std::fs::write(outside.join(name), "mine\n").unwrap();
    }

    for name in ["index", "tips", "models", "tips/change"] {
        let (dir, aside) = (teddy.join(name), repo.beside("aside"));
        let was_there = std::fs::rename(&dir, &aside).is_ok();
        std::os::unix::fs::symlink(&outside, &dir).unwrap();
        for args in [&["status"][..], &["sessions"], &["undo"]] {
            let words = format!(".git/teddy/{name}`: it is a link");
            repo.teddy(args).check(1, &[&words]);
        }
        std::fs::remove_file(&dir).unwrap();
        if was_there {
            std::fs::rename(&aside, &dir).unwrap();
        }
    }
    for name in ["main", "demo"] {
        let text = std::fs::read_to_string(outside.join(name)).unwrap();
        assert_eq!(text, "mine\n", "{name}");
    }
    repo.done(&["status"]);
}
