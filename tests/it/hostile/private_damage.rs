//! What a command puts in the place of the files of its git directory, and what it writes to them.
//!
//! CI also runs this module as root.

use std::path::PathBuf;

use super::ground::{Ground, everything_works, plan, run};
use crate::support::sample;

/// Sets `$g` to the git directory of the worktree, as a command finds it.
const G: &str = "g=$(git rev-parse --absolute-git-dir); ";

/// Replaces the placeholders for paths.
pub fn fill(ground: &Ground, command: &str) -> String {
    let command = command
        .replace("REPO", ground.repo.path().to_str().unwrap())
        .replace("HOME", ground.repo.beside("home").to_str().unwrap());
    format!("{G}{command}")
}

/// Creates a directory in the home directory and returns a file in it.
pub fn documents(ground: &Ground) -> PathBuf {
    let file = ground.repo.beside("home/docs/a");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "mine\n").unwrap();
    file
}

/// Tells that git works for a command, whatever the command before it did.
const WORKS: &str =
    "test -f a.txt && git status > /dev/null && git log -1 > /dev/null && echo 'git ''works'; ";

/// Executes a command that first uses git, as [`fill`] has it. Returns the exit code and what was said.
#[track_caller]
fn after_the_last(ground: &Ground, name: &str, command: &str) -> (i32, String) {
    let command = fill(ground, &format!("{WORKS}{command}"));
    let tried = ground.execute(plan(&run(&command)));
    let works = tried.words.contains("│ git works");
    assert!(works, "before {name}: {}", tried.words);
    (tried.code, tried.words)
}

/// Checks after one case of several that everything works. `it` checks it after the last one. There,
/// the command of the next case shows that the last one stopped nobody.
#[track_caller]
fn everything_works_in_worlds(ground: &Ground, after: &str) {
    if crate::WORLDS {
        everything_works(ground, after);
    }
}

#[test]
fn attack_2_nothing_is_written_through_a_link_of_a_command() {
    let ground = Ground::new();
    let file = documents(&ground);
    let setup = "worktree.setup='true # once'";
    let names = ["teddy-index", "teddy-ready", "index", "HEAD", "config"];
    let links = ["docs/a", "docs/new"].map(|target| names.map(|name| (name, target)));
    let links = sample(links.into_iter().flatten(), 2, 0);
    // The next command replaces another file, so that a whole turn sees each link.
    let commands =
        links.map(|(name, target)| format!("rm -f $g/{name}; ln -s HOME/{target} $g/{name}"));
    for command in commands.chain(["true".to_owned()]) {
        let text = plan(&run(&fill(&ground, &command)));
        let tried = ground.execute_with(text, &["-c", setup]);
        assert_eq!(tried.code, 0, "{command}: {}", tried.words);
        let kept = std::fs::read_to_string(&file).unwrap();
        assert_eq!(kept, "mine\n", "{command}");
        assert!(!file.with_file_name("new").exists(), "{command}");
    }
    everything_works(&ground, "links in the place of files");
}

/// Writes two blobs and replaces the first one by the second.
const FALSE_BLOB: &str = "said=$(echo right | git hash-object -w --stdin) && \
    held=$(echo wrong | git hash-object -w --stdin) && \
    at() { echo $g/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); } && \
    rm -f $(at $said) && cp $(at $held) $(at $said)";

const FALSE_TREE: &str = "$(printf '100644 blob %s\\tb\\n' $said | git mktree --missing)";

/// A name, the expected message, and a command that creates such a commit and prints its id. Each second
/// is in the sample.
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
    let cases = unsound_commits().into_iter().enumerate();
    for (number, (name, why, made)) in sample(cases, 2, 0) {
        let command = format!(
            "c=$({made}) && mkdir -p $g/refs/heads && echo $c > $g/HEAD && echo {number} > a.txt"
        );
        let (code, words) = after_the_last(&ground, name, &command);
        assert_eq!(code, 0, "{name}: {words}");
        let report = ground.ok(&["show"]);
        let told = report.lines().find(|line| line.contains("was not taken: "));
        assert!(
            told.is_some_and(|line| line.contains(why)),
            "{name}: {report}"
        );
        assert_eq!(ground.repo.read("a.txt"), format!("{number}\n"), "{name}");
        everything_works_in_worlds(&ground, name);
    }
    everything_works(&ground, "unsound commits");
}

/// A name and a command that damages the git directory it sees. Each third is in the sample.
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
    (
        "links everywhere",
        "for f in $(find $g -type f); do rm -f $f; ln -s REPO/.git/config $f; done",
    ),
    (
        "pipes everywhere",
        "for f in $(find $g -type f); do rm -f $f; mkfifo $f; done",
    ),
    ("a pipe as the index", "rm -f $g/index; mkfifo $g/index"),
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
        "alternates that lead elsewhere",
        "echo HOME > $g/objects/info/alternates; echo /dev/zero >> $g/objects/info/alternates",
    ),
    (
        "objects that are none",
        "for i in 0 1 2 3; do mkdir -p $g/objects/a$i; echo x > $g/objects/a$i/$(printf '%038d' $i); done; echo x > $g/objects/pack/pack-x.pack; echo x > $g/objects/pack/pack-x.idx",
    ),
    (
        "deep folders in the worktree without permissions",
        "mkdir -p x/y/z; for i in $(seq 300); do mkdir -p x/dddddddddddddddddddd; mv x/dddddddddddddddddddd n; mkdir m; mv n m/n; mv m x/dddddddddddddddddddd; done; chmod 000 x/y/z",
    ),
];

#[test]
fn attack_9_what_a_command_does_to_its_git_directory_stops_nobody() {
    let ground = Ground::new();
    for (name, command) in sample(VANDALISM, 3, 0) {
        let others = ground.others();
        let (code, words) = after_the_last(&ground, name, &format!("{command}; true"));
        assert!(matches!(code, 0 | 1), "{name}: {words}");
        assert_eq!(ground.others(), others, "{name}");
        everything_works_in_worlds(&ground, name);
    }
    everything_works(&ground, "all damage");
}

#[test]
fn attack_10_a_pipe_in_the_place_of_any_file_is_not_waited_at() {
    let ground = Ground::new();
    let names = [
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
    ];
    for name in sample(names, 2, 0) {
        let command = format!("mkdir -p $(dirname $g/{name}); rm -f $g/{name}; mkfifo $g/{name}");
        let (code, words) = after_the_last(&ground, name, &command);
        assert_eq!(code, 0, "{name}: {words}");
        everything_works_in_worlds(&ground, name);
    }
    everything_works(&ground, "pipes in the place of files");
}
