//! Editable installs, linked packages and foreign environments in copies and overlays.

use teddy::host::sandbox::{Availability, availability};

use crate::plans::{edit, execute, plan};
use crate::scripted_agent::scripted_command;
use crate::support::overlay::{CHECKOUT, OVERLAY, overlays, run};
use crate::support::{TestRepo, skipped};
use crate::worktree::walkthroughs::{install, make_executable, runs};

/// Bug: Python imported the modules of the checkout, which the sandbox hides, so each test failed.
#[test]
fn an_editable_install_imports_the_modules_of_the_copy() {
    let repo = TestRepo::new()
        .file(".gitignore", ".venv/\n*.egg-info/\n")
        .file("src/calc/__init__.py", "def add(a, b): return a + b\n");
    repo.commit("init");
    if !runs(&repo, "python3", &["-m", "venv", "--without-pip", ".venv"]) {
        return skipped("no python3 with venv here");
    }
    install(&repo);
    repo.write("src/calc.egg-info/PKG-INFO", "Name: calc\nVersion: 0.1\n");
    let script = "import calc, importlib.metadata; print(calc.add(1, 2), importlib.metadata.version('calc'), calc.__file__)";
    let edited = edit("src/calc/__init__.py", "a + b", "a - b");
    // Each build of the package does this.
    let build = "echo 'Summary: x' >> src/calc.egg-info/PKG-INFO";
    let command = execute(&format!(
        "{build} && .venv/bin/python -B -c \"{script}\" > seen"
    ));
    repo.done(&["new", "s"]);
    repo.done(&["context", "add", "src/calc/__init__.py"]);
    repo.put("../plan.md", plan("Subtract", &[edited, command]));
    for setting in ["execute.sandbox=on", "execute.sandbox=off"] {
        let run = ["execute", "../plan.md", "-y", "-c", setting];
        let out = repo.teddy(&[&run[..], &["-c", "worktree.backend=checkout"]].concat());
        out.check(0, &[]);
        assert!(!out.stderr.contains("run in a copy"), "{out}");
        let seen = repo.read("seen");
        let expected = "-1 0.1 ";
        assert!(seen.starts_with(expected), "{setting}: {seen}");
        assert!(!seen.contains(&*repo.path().to_string_lossy()), "{seen}");
        let info = repo.read("src/calc.egg-info/PKG-INFO");
        assert_eq!(info, "Name: calc\nVersion: 0.1\n");
        repo.done(&["undo"]);
    }
    let root = repo.beside("a:b").display().to_string();
    let more = ["-c", CHECKOUT, "-c", &format!("worktree.root={root}")];
    let out = repo.teddy(&[&["execute", "../plan.md", "-y"], &more[..]].concat());
    out.check(1, &["`.venv` has modules of your checkout"]);
}

/// An environment with an editable install, of which only the path file matters here.
fn with_path_file() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", ".venv/\n*.egg-info/\n")
        .file("a.txt", "a\n")
        .file("src/calc/__init__.py", "");
    let top = repo.path().canonicalize().unwrap();
    let top = top.display();
    let paths = format!("{top}/src\n{top}/../beside\n{top}/nul\0\n");
    repo.write(".venv/lib/python3.11/site-packages/calc.pth", paths);
    repo
}

/// Regression: a `sitecustomize.py` that a command had left in the worktree ran in an agent in Python,
/// with its keys and the network.
#[test]
fn only_an_agent_that_is_no_python_program_gets_the_modules_of_a_copy() {
    let repo = with_path_file();
    repo.commit("init");
    let dir = repo.beside("agent");
    std::fs::create_dir(&dir).unwrap();
    let agent = scripted_command(&dir, "echo \"$PYTHONPATH\" > seen; echo Done.");
    let agent = agent.display();
    repo.configure(&format!(
        "models:\n  codex: {{ kind: agent, id: codex, run: [{agent}] }}\n  aider: {{ kind: agent, id: aider, run: [{agent}] }}\n  other: {{ kind: agent, run: [{agent}] }}\n"
    ));
    repo.done(&["new", "s"]);
    let seen = |model: &str, sandbox: &str| {
        let ask = ["plan", "--model", model, "-m", "look"];
        let out = repo.teddy(&[&ask[..], &["-c", sandbox, "-c", CHECKOUT]].concat());
        out.check(0, &[]);
        repo.done(&["execute", "-y"]);
        let notes = out.stderr.matches("does not get the modules").count();
        let seen = repo.read("seen");
        repo.done(&["undo"]);
        (
            seen.trim_end()
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
            notes,
        )
    };
    let (on, off) = ("execute.sandbox=on", "execute.sandbox=off");
    let is_confined = !matches!(availability(), Availability::None(_));
    assert_eq!(seen("aider", on), (String::new(), 1));
    assert_eq!(seen("other", on), (String::new(), 1));
    assert_eq!(seen("codex", off), (String::new(), 1));
    if is_confined {
        assert_eq!(seen("codex", on), ("src".to_owned(), 0));
    }
}

/// Regression: a path with a NUL byte let no command start, and `..` led out of the worktree.
#[test]
fn python_gets_only_directories_in_a_copy() {
    let repo = with_path_file();
    repo.commit("init");
    repo.done(&["new", "s"]);
    run(&repo, CHECKOUT, "echo \"$PYTHONPATH\" > seen").check(0, &["`.venv` has modules"]);
    let seen = repo.read("seen");
    assert!(seen.ends_with("/src\n") && !seen.contains(':'), "{seen}");
}

/// Regression: the user's present version was recorded as a change by the commands.
#[test]
fn a_tracked_package_description_is_that_of_the_turn() {
    let repo = with_path_file();
    repo.write("src/calc.egg-info/PKG-INFO", "Name: calc\n");
    repo.git(&["add", "-f", "src/calc.egg-info"]);
    repo.commit("init");
    repo.done(&["new", "s"]);
    run(&repo, CHECKOUT, "echo b > a.txt").check(0, &[]);
    repo.write("src/calc.egg-info/PKG-INFO", "Name: other\n");
    repo.done(&["verify", "--rerun", "1", "-y", "-c", CHECKOUT]);
}

/// Bug: as in a copy. An overlay is not mounted over objects that commands borrow.
#[test]
fn an_editable_install_imports_the_modules_of_an_overlay_at_another_path() {
    if !overlays() {
        return;
    }
    let repo = TestRepo::new()
        .file(".gitignore", ".venv/\nborrowed.git/\n")
        .file("src/calc/__init__.py", "def add(a, b): return a + b\n");
    repo.commit("init");
    if !runs(&repo, "python3", &["-m", "venv", "--without-pip", ".venv"]) {
        return skipped("no python3 with venv here");
    }
    install(&repo);
    repo.git(&["init", "-q", "--bare", "borrowed.git"]);
    let objects = repo.path().join("borrowed.git/objects");
    repo.write(
        ".git/objects/info/alternates",
        format!("{}\n", objects.display()),
    );
    let script = "import calc; print(calc.add(1, 2), calc.__file__)";
    repo.done(&["new", "s"]);
    let python = ".venv/bin/python";
    run(&repo, OVERLAY, &format!("{python} -B -c '{script}' > seen")).check(0, &[]);
    let seen = repo.read("seen");
    assert!(seen.starts_with("3 "), "{seen}");
    assert!(!seen.contains(&*repo.path().to_string_lossy()), "{seen}");
}

/// Bug: the links led to the checkout: commands failed, or tested the user's files instead of the
/// turn's.
#[test]
fn packages_of_a_workspace_are_those_of_the_copy() {
    let repo = TestRepo::new()
        .file(".gitignore", "node_modules\nvendor/\n")
        .file("packages/sum/index.js", "a + b\n")
        .file("packages/cli/run.sh", "#!/bin/sh\necho before\n");
    make_executable(&repo, "packages/cli/run.sh");
    repo.commit("init");
    let link = |target: &str, path: &str| {
        let path = repo.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    link(".store/dep", "node_modules/dep");
    for path in [
        "node_modules/.store/dep/index.js",
        "vendor/other/dep/index.js",
    ] {
        repo.write(path, "dep\n");
    }
    repo.done(&["new", "s"]);
    repo.done(&["context", "add", "packages"]);
    // Until then, one link leads to all of them.
    run(
        &repo,
        CHECKOUT,
        "cat node_modules/dep/index.js; test -L node_modules",
    )
    .check(0, &[]);

    // As npm, pnpm and Composer make them.
    let absolute = repo.path().join("packages/sum");
    link("../../packages/sum", "node_modules/@my/sum");
    link("../../packages/cli/run.sh", "node_modules/.bin/cli");
    link("../../../sum", "packages/cli/node_modules/@my/sum");
    link(absolute.to_str().unwrap(), "vendor/my/sum");
    let script = "for file in node_modules/@my/sum packages/cli/node_modules/@my/sum vendor/my/sum node_modules/dep vendor/other/dep; do cat $file/index.js; done > seen; node_modules/.bin/cli >> seen; git status --short >> seen; true";
    let actions = [
        edit("packages/sum/index.js", "a + b", "a - b"),
        edit("packages/cli/run.sh", "before", "after"),
        execute(script),
    ];
    repo.put("../plan.md", plan("Subtract", &actions));
    let expected = "a - b\na - b\na - b\ndep\ndep\nafter\n M packages/cli/run.sh\n M packages/sum/index.js\n?? seen\n";
    for setting in ["execute.sandbox=on", "execute.sandbox=off"] {
        let run = ["execute", "../plan.md", "-y", "-c", setting];
        let out = repo.teddy(&[&run[..], &["-c", CHECKOUT]].concat());
        out.check(0, &[]);
        assert_eq!(repo.read("seen"), expected, "{setting}: {out}");
        assert!(repo.path().join("node_modules/@my/sum").is_symlink());
        repo.done(&["undo"]);
    }

    // Bug: the directory of links stayed, and the sandbox did not open what they lead to.
    for dir in ["node_modules/@my", "node_modules/.bin"] {
        std::fs::remove_dir_all(repo.path().join(dir)).unwrap();
    }
    run(
        &repo,
        CHECKOUT,
        "cat node_modules/dep/index.js; test -L node_modules",
    )
    .check(0, &[]);
}

/// An environment in an ignored directory of any name.
#[test]
fn an_environment_of_another_python_is_explained_and_one_of_any_name_is_linked() {
    let repo = TestRepo::new()
        .file(".gitignore", ".venv/\n/env-3.9/\n")
        .file("a.txt", "a\n");
    repo.commit("init");
    for (environment, program) in [(".venv", "/no/python3.9"), ("env-3.9", "/bin/sh")] {
        let configured = "home = /no\nversion = 3.9.1\n";
        repo.write(&format!("{environment}/pyvenv.cfg"), configured);
        repo.write(&format!("{environment}/bin/tool"), "#!/no/python3.9\n");
        make_executable(&repo, &format!("{environment}/bin/tool"));
        let python = repo.path().join(environment).join("bin/python");
        std::os::unix::fs::symlink(program, python).unwrap();
    }
    repo.done(&["new", "s"]);
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        for (script, hint) in [
            (
                ".venv/bin/python -V",
                "`.venv/bin/python` exists, but leads to `/no/python3.9`, which does not exist",
            ),
            (
                "env-3.9/bin/tool",
                "`env-3.9/bin/tool` exists, but needs `/no/python3.9`, which does not exist",
            ),
        ] {
            let out = run(&repo, backend, script);
            out.check(1, &["exit code 127", hint]);
        }
        run(&repo, backend, "env-3.9/bin/python -c 'echo runs > seen'").check(0, &[]);
        assert_eq!(repo.read("seen"), "runs\n");
        let out = repo.teddy(&["-c", backend, "bisect", "run", ".venv/bin/python"]);
        out.check(1, &["cannot be run", "exit code 127"]);
        repo.done(&["undo"]);
    }
}
