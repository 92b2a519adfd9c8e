//! Attacks on the git directory that commands see, and through it on the user's. They must not
//! control what TeDDy later deletes, writes, runs or records.
//!
//! CI also runs this module as root.

use super::ground::{Ground, everything_works, plan, run};
use super::private_damage::{documents, fill};

/// Executes a command, which must succeed. Returns the report.
#[track_caller]
fn execute(ground: &Ground, command: &str) -> String {
    let tried = ground.execute(plan(&run(&fill(ground, command))));
    assert_eq!(tried.code, 0, "{command}: {}", tried.words);
    ground.ok(&["show"])
}

#[test]
fn attack_1_a_record_that_names_another_folder_has_nothing_removed() {
    let ground = Ground::new();
    let file = documents(&ground);
    for name in ["docs", "docs/", "docs/../docs"] {
        execute(
            &ground,
            &format!("echo HOME/{name}/.git > $g/gitdir; echo 'gitdir: HOME/docs/.git' > $g/x"),
        );
        ground.teddy(&["verify", "--rerun", "@"]);
        assert!(file.exists(), "replay removed the documents");
        ground.teddy(&["gc", "--idle-days", "0", "-y"]);
        assert!(file.exists(), "gc removed the documents");
    }
    execute(
        &ground,
        "rm -rf $g; echo 'gitdir: HOME/docs/.git' > .git; ln -s HOME/docs link",
    );
    ground.teddy(&["gc", "--idle-days", "0", "-y"]);
    execute(&ground, "rm -rf .git; ln -s HOME/docs .git");
    ground.teddy(&["verify", "--rerun", "@"]);
    ground.teddy(&["gc", "--idle-days", "0", "-y"]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine\n");
    everything_works(&ground, "a record that names another folder");
}

#[test]
fn attack_3_no_object_of_the_users_can_be_emptied() {
    let ground = Ground::new();
    let (repo, clone) = (ground.repo.path(), ground.repo.beside("clone"));
    // A local clone hard-links its objects to those of the repository.
    ground.repo.git(&[
        "clone",
        "-q",
        repo.to_str().unwrap(),
        clone.to_str().unwrap(),
    ]);
    let all = "for o in REPO/.git/objects $(sed 1q $g/objects/info/alternates 2> /dev/null); do";
    for how in [
        ": > \"$f\"",
        "truncate -s 0 \"$f\"",
        "rm -f \"$f\"",
        "mv \"$f\" \"$f.old\"",
    ] {
        let command = format!(
            "{all} find \"$o\" -type f | while read -r f; do chmod u+w \"$f\"; {how}; done; done 2> /dev/null; true"
        );
        execute(&ground, &command);
        for folder in [&repo, &clone] {
            ground
                .repo
                .git_in(folder, &["fsck", "--strict", "--full", "--no-dangling"]);
        }
    }
    assert_eq!(ground.repo.git(&["show", "HEAD:a.txt"]), "one");
    everything_works(&ground, "objects that were to be emptied");
}

#[test]
fn a_head_that_leads_back_to_itself_is_not_followed_without_an_end() {
    let ground = Ground::new();
    let command = "mkdir -p $g/refs/heads && echo 'ref: refs/heads/x' > $g/refs/heads/x && \
                   echo 'ref: refs/heads/x' > $g/HEAD && echo 2 > a.txt";
    let report = execute(&ground, command);
    let told = "HEAD of the commands' repository names no commit";
    assert!(report.contains(told), "{report}");
    assert_eq!(ground.repo.read("a.txt"), "2\n");
}

#[test]
fn a_head_that_names_a_file_outside_of_refs_is_not_followed() {
    let ground = Ground::new();
    let command = "echo 2 > a.txt && git commit -qam two && \
                   git rev-parse HEAD > $g/ORIG_HEAD && echo 'ref: ORIG_HEAD' > $g/HEAD";
    let report = execute(&ground, command);
    let message = "HEAD of the commands' repository names no commit";
    assert!(report.contains(message), "{report}");
    assert_eq!(ground.repo.read("a.txt"), "2\n");
}

#[test]
fn attack_6_a_setup_runs_confined_and_not_at_a_commands_wish() {
    let ground = Ground::new();
    let trace = ground.repo.beside("home/trace");
    let script = |words: &str| {
        format!(
            "echo {words} >> {}; echo {words} >> ran; true\n",
            trace.display()
        )
    };
    ground
        .repo
        .put(".gitignore", "ignored\nran\n")
        .put("deps.sh", script("first"))
        .commit("setup");
    let setup = ["-c", "worktree.setup=sh ./deps.sh"];
    let turn = |command: &str| {
        let tried = ground.execute_with(plan(&run(&fill(&ground, command))), &setup);
        assert_eq!(tried.code, 0, "{command}: {}", tried.words);
        tried.words
    };
    assert!(turn("test \"$(cat ran)\" = first").contains("preparing the worktree"));
    let evil = script("evil").replace('\n', "");
    turn(&format!(
        "printf '%s\\n' '{evil}' > deps.sh; rm -f $g/teddy-ready; rm -rf $g"
    ));
    assert!(!turn("test \"$(cat ran)\" = first").contains("preparing"));
    // A new worktree runs the setup again, with the user's script and in the sandbox.
    ground.ok(&["gc", "--idle-days", "0", "-y"]);
    assert!(turn("true").contains("preparing the worktree"));
    assert!(!trace.exists(), "the setup wrote outside of the worktree");
}

/// A program on `PATH` makes its neighbors in the project readable in the sandbox. That must not
/// include secrets.
#[test]
fn secrets_beside_programs_of_the_project_are_not_read() {
    let ground = Ground::new();
    let repo = &ground.repo;
    repo.put(".gitignore", ".env\n");
    for (path, text) in [
        ("backend/bin/tool", "#!/bin/sh\n"),
        ("backend/lib/a", "library\n"),
        ("backend/.env", "KEY=mine\n"),
        ("backend/lib/deep/.env", "KEY=mine\n"),
    ] {
        repo.put(path, text);
    }
    let path = format!(
        "{}:{}",
        repo.path().join("backend/bin").display(),
        teddy::host::env::var("PATH").unwrap()
    );
    let script = fill(
        &ground,
        "cat REPO/backend/lib/a || exit 1; for f in .env lib/deep/.env; do cat REPO/backend/$f && exit 1; done; true",
    );
    std::fs::write(repo.beside("plan.md"), plan(&run(&script))).unwrap();
    for backend in ["overlay", "checkout"] {
        let backend = format!("worktree.backend={backend}");
        let args = ["execute", "../plan.md", "-y", "--no-replan", "-c", &backend];
        let output = ground.teddy_with(&args, &[("PATH", &path)]);
        assert!(output.status.success(), "{}", super::ground::words(&output));
        let shown = ground.ok(&["show"]);
        assert!(
            shown.contains("library") && !shown.contains("mine"),
            "{shown}"
        );
    }
}
