//! Attacks on the git directory that commands see, and through it on the user's. They must not
//! control what TeDDy later deletes, writes, runs or records.
//!
//! CI also runs this module as root.

use std::path::PathBuf;

use super::ground::{Ground, everything_works, next_turn_works, plan, run};

/// Sets `$g` to the git directory of the worktree, as a command finds it.
const G: &str = "g=$(git rev-parse --absolute-git-dir); ";

/// Executes a command, which must succeed. Returns the report.
#[track_caller]
fn execute(ground: &Ground, command: &str) -> String {
    let tried = ground.execute(plan(&run(&fill(ground, command))));
    assert_eq!(tried.code, 0, "{command}: {}", tried.words);
    ground.ok(&["show"])
}

/// Replaces the placeholders for paths.
fn fill(ground: &Ground, command: &str) -> String {
    let command = command
        .replace("REPO", ground.repo.path().to_str().unwrap())
        .replace("HOME", ground.repo.beside("home").to_str().unwrap());
    format!("{G}{command}")
}

/// Creates a directory in the home directory and returns a file in it.
fn documents(ground: &Ground) -> PathBuf {
    let file = ground.repo.beside("home/docs/a");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "mine\n").unwrap();
    file
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
fn attack_2_nothing_is_written_through_a_link_of_a_command() {
    let ground = Ground::new();
    let file = documents(&ground);
    let setup = "worktree.setup='true # once'";
    for name in ["teddy-index", "teddy-ready", "index", "HEAD", "config"] {
        for target in ["docs/a", "docs/new"] {
            let command = format!("rm -f $g/{name}; ln -s HOME/{target} $g/{name}");
            for turn in [&command, "true"] {
                let text = plan(&run(&fill(&ground, turn)));
                let tried = ground.execute_with(text, &["-c", setup]);
                assert_eq!(tried.code, 0, "{command}: {}", tried.words);
            }
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n", "{name}");
            assert!(!file.with_file_name("new").exists(), "{name}");
        }
    }
    everything_works(&ground, "links in the place of files");
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

/// Writes two blobs and replaces the first one by the second.
const FALSE_BLOB: &str = "said=$(echo right | git hash-object -w --stdin) && \
    held=$(echo wrong | git hash-object -w --stdin) && \
    at() { echo $g/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); } && \
    rm -f $(at $said) && cp $(at $held) $(at $said)";

const FALSE_TREE: &str = "$(printf '100644 blob %s\\tb\\n' $said | git mktree --missing)";

/// A name, the expected message, and a command that creates such a commit and prints its id.
fn unsound_commits() -> Vec<(&'static str, &'static str, String)> {
    let commit = |tree: &str, parents: &str| {
        format!(
            "printf 'tree %s\\n{parents}author a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\n\\nx\\n' {tree} | git hash-object --literally -t commit -w --stdin"
        )
    };
    let before = "parent '$(git rev-parse HEAD)'\\n";
    let gone = "1111111111111111111111111111111111111111";
    let tree = "$(git rev-parse HEAD^{tree})";
    let entry = |mode: &str, kind: &str, name: &str| {
        format!("$(printf '{mode} {kind} {gone}\\t{name}\\n' | git mktree --missing)")
    };
    // The binary id of an existing blob, as octal escapes: `printf` of a POSIX `sh` does not know
    // `\x`.
    let bytes =
        "for x in $(git rev-parse HEAD:a.txt | sed 's/../0x& /g'); do printf '\\\\%03o' $x; done";
    let blob = "${b}";
    let raw = |tree: &str| {
        let tree = tree.replace("\\0", "\\000");
        format!(
            "$(b=$({bytes}); printf \"{tree}\" | git hash-object --literally -t tree -w --stdin)"
        )
    };
    vec![
        ("no tree", "is missing", commit(gone, before)),
        (
            "no parent",
            "is missing",
            commit(tree, &format!("{before}parent {gone}\\n")),
        ),
        (
            "no blob",
            "is missing",
            commit(&entry("100644", "blob", "a.txt"), before),
        ),
        (
            "no tree below",
            "is missing",
            commit(&entry("040000", "tree", "src"), before),
        ),
        (
            "a tree that is a blob",
            "expected type tree, found blob",
            commit("$(git rev-parse HEAD:a.txt)", before),
        ),
        (
            "a new blob in the place of a tree",
            "is a blob and named as a tree",
            commit("$(echo x | git hash-object -w --stdin)", before),
        ),
        (
            "a blob with the content of another one",
            "is not what its name says",
            format!("{FALSE_BLOB}; {}", commit(FALSE_TREE, before)),
        ),
        (
            "a history of its own",
            "does not follow the commit that the plan began with",
            commit(tree, ""),
        ),
        (
            "a parent that is a tree",
            "is a tree, not a commit",
            commit(
                tree,
                &format!("{before}parent '$(git rev-parse HEAD^{{tree}})'\\n"),
            ),
        ),
        (
            "a tree without order",
            "treeNotSorted",
            commit(&raw(&format!("100644 b\\0{blob}100644 a\\0{blob}")), before),
        ),
        (
            "a name twice",
            "duplicateEntries",
            commit(&raw(&format!("100644 a\\0{blob}100644 a\\0{blob}")), before),
        ),
        (
            "a name with a slash",
            "fullPathname",
            commit(&raw(&format!("100644 a/b\\0{blob}")), before),
        ),
        (
            "a name that is .git",
            "hasDotgit",
            commit(&raw(&format!("100644 .git\\0{blob}")), before),
        ),
        (
            "a name that is ..",
            "hasDotdot",
            commit(&raw(&format!("100644 ..\\0{blob}")), before),
        ),
        (
            "a tree cut off",
            "is malformed",
            commit(&raw("100644 a\\0abc"), before),
        ),
        (
            "no author",
            "is malformed",
            format!(
                "printf 'tree %s\\n{before}committer a <a@b> 1 +0000\\n\\nx\\n' {tree} | git hash-object --literally -t commit -w --stdin"
            ),
        ),
    ]
}

#[test]
fn attack_5_a_commit_that_is_not_sound_is_not_taken() {
    let ground = Ground::new();
    for (number, (name, why, made)) in unsound_commits().into_iter().enumerate() {
        let command = format!(
            "c=$({made}) && mkdir -p $g/refs/heads && echo $c > $g/HEAD && echo {number} > a.txt"
        );
        let report = execute(&ground, &command);
        let told = report.lines().find(|line| line.contains("was not taken: "));
        assert!(
            told.is_some_and(|line| line.contains(why)),
            "{name}: {report}"
        );
        assert_eq!(ground.repo.read("a.txt"), format!("{number}\n"), "{name}");
        next_turn_works(&ground, name);
    }
    everything_works(&ground, "unsound commits");
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

/// A name and a command that damages the git directory it sees.
const VANDALISM: &[(&str, &str)] = &[
    (
        "70 kB in gitdir",
        "head -c 70000 /dev/zero | tr '\\0' x > $g/gitdir",
    ),
    (
        "70 kB in HEAD",
        "head -c 70000 /dev/zero | tr '\\0' x > $g/HEAD",
    ),
    (
        "a folder called locked",
        "rm -f $g/locked; mkdir -p $g/locked/x",
    ),
    ("no permissions", "chmod 000 $g"),
    (
        "a folder without permissions",
        "mkdir -p $g/d/e/f; chmod 000 $g/d",
    ),
    (
        "a locked HEAD",
        "touch $g/HEAD.lock $g/index.lock $g/config.lock $g/packed-refs.lock",
    ),
    (
        "HEAD on the user's branch",
        "echo 'ref: refs/heads/main' > $g/HEAD",
    ),
    ("HEAD that leads to itself", "echo 'ref: HEAD' > $g/HEAD"),
    (
        "HEAD that leads out",
        "echo 'ref: refs/../../../../HEAD' > $g/HEAD",
    ),
    ("an index that is none", "printf x > $g/index"),
    (
        "an index that is a folder",
        "rm -f $g/index; mkdir $g/index",
    ),
    ("no index", "rm -f $g/index"),
    (
        "a config that is none",
        "printf '[' > $g/config; printf '[' > $g/config.worktree",
    ),
    (
        "a pipe as the log of HEAD",
        "rm -rf $g/logs; mkdir $g/logs; mkfifo $g/logs/HEAD",
    ),
    ("a pipe as HEAD", "rm -f $g/HEAD; mkfifo $g/HEAD"),
    ("a pipe as the index", "rm -f $g/index; mkfifo $g/index"),
    (
        "pipes everywhere",
        "for f in $(find $g -type f); do rm -f $f; mkfifo $f; done",
    ),
    (
        "links everywhere",
        "for f in $(find $g -type f); do rm -f $f; ln -s REPO/.git/config $f; done",
    ),
    (
        "objects that lead elsewhere",
        "rm -rf $g/objects; ln -s REPO/.git/objects $g/objects",
    ),
    (
        "refs that lead elsewhere",
        "rm -rf $g/refs; ln -s REPO/.git/refs $g/refs",
    ),
    ("no git directory", "rm -rf $g"),
    (
        "another repository",
        "rm -rf $g .git; git init -q . && git add -A && git -c user.name=a -c user.email=b commit -qm x",
    ),
    ("the git directory is a file", "rm -rf $g; echo x > .git"),
    ("the git directory is a pipe", "rm -rf $g .git; mkfifo .git"),
    (
        "the git directory leads elsewhere",
        "rm -rf $g .git; ln -s REPO/.git .git",
    ),
    (
        "the git directory is read-only",
        "find $g -type d -exec chmod 555 {} +",
    ),
    (
        "deep folders",
        "d=$g; cd $d; for i in $(seq 400); do mkdir dddddddddddddddddddd; cd dddddddddddddddddddd; done",
    ),
    (
        "deep folders in the worktree without permissions",
        "mkdir -p x/y/z; for i in $(seq 300); do mkdir -p x/dddddddddddddddddddd; mv x/dddddddddddddddddddd n; mkdir m; mv n m/n; mv m x/dddddddddddddddddddd; done; chmod 000 x/y/z",
    ),
    (
        "objects that are none",
        "for i in 0 1 2 3; do mkdir -p $g/objects/a$i; echo x > $g/objects/a$i/$(printf '%038d' $i); done; echo x > $g/objects/pack/pack-x.pack; echo x > $g/objects/pack/pack-x.idx",
    ),
    (
        "alternates that lead elsewhere",
        "echo HOME > $g/objects/info/alternates; echo /dev/zero >> $g/objects/info/alternates",
    ),
];

#[test]
fn attack_9_what_a_command_does_to_its_git_directory_stops_nobody() {
    let ground = Ground::new();
    for (name, command) in VANDALISM {
        let others = ground.others();
        let tried = ground.execute(plan(&run(&(fill(&ground, command) + "; true"))));
        assert!(matches!(tried.code, 0 | 1), "{name}: {}", tried.words);
        assert_eq!(ground.others(), others, "{name}");
        next_turn_works(&ground, name);
    }
    everything_works(&ground, "all damage");
}

#[test]
fn attack_10_a_pipe_in_the_place_of_any_file_is_not_waited_at() {
    let ground = Ground::new();
    for name in [
        "logs/HEAD",
        "HEAD",
        "index",
        "config",
        "packed-refs",
        "objects/info/alternates",
        "refs/heads/main",
        "shallow",
        "info/exclude",
        "commondir",
        "gitdir",
        "locked",
        "ORIG_HEAD",
    ] {
        let command = format!("mkdir -p $(dirname $g/{name}); rm -f $g/{name}; mkfifo $g/{name}");
        execute(&ground, &command);
        next_turn_works(&ground, name);
    }
    everything_works(&ground, "pipes in the place of files");
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
