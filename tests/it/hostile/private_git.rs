//! The git directory that commands see in repositories with filters, missing objects (partial
//! clones) or many refs. Git works as it does outside, and no object is lost.

use super::ground::{Ground, create, plan, run};
use crate::support::TestRepo;

/// A stand-in for Git LFS: stores content in `lfs/objects` and gives git a pointer. Like Git LFS,
/// it also searches the repositories listed in `objects/info/alternates`.
const LFS: &str = r#"#!/bin/sh
git=$(git rev-parse --absolute-git-dir) && file=$(mktemp) && cat > "$file"
case $1 in
clean)
    if head -n 1 "$file" | grep -q '^version stand-in$'; then cat "$file"; exit; fi
    id=$(sha256sum < "$file" | cut -c 1-64)
    mkdir -p "$git/lfs/objects" && cp "$file" "$git/lfs/objects/$id" || exit 1
    printf 'version stand-in\noid %s\n' "$id" ;;
smudge)
    id=$(sed -n 's/^oid //p' "$file")
    { echo "$git/lfs"; sed 's/^"//; s/"$//; s,/objects$,/lfs,' "$git/objects/info/alternates" 2> /dev/null; } |
    { while read -r store; do
        if test -f "$store/objects/$id"; then cat "$store/objects/$id"; exit; fi
    done
    echo "no content for $id" >&2; exit 1; } ;;
esac
"#;

/// The same as a long-running filter process, which speaks git's pkt-line protocol.
const LFS_PROCESS: &str = r#"#!/bin/sh
line() { # reads one into $text, which is empty where a list ends
    size=$(dd bs=1 count=4 2> /dev/null); test -n "$size" || exit 0
    size=$((0x$size - 4)); text=
    test $size -gt 0 || return 1
    text=$(dd bs=1 count=$size 2> /dev/null)
}
say() { printf '%04x%s\n' $((${#1} + 5)) "$1"; }
end() { printf 0000; }
while line; do :; done
say git-filter-server; say version=2; end
while line; do :; done
say capability=clean; say capability=smudge; end
while :; do
    command=
    while line; do case $text in command=*) command=${text#command=} ;; esac; done
    : > "$TMPDIR/asked"
    while size=$(dd bs=1 count=4 2> /dev/null) && test "$size" != 0000; do
        dd bs=1 count=$((0x$size - 4)) 2> /dev/null >> "$TMPDIR/asked"
    done
    if sh "LFS" $command < "$TMPDIR/asked" > "$TMPDIR/answer"; then
        say status=success; end
        size=$(wc -c < "$TMPDIR/answer")
        test "$size" -eq 0 || { printf '%04x' $((size + 4)); cat "$TMPDIR/answer"; }
        end; end
    else
        say status=error; end
    fi
done
"#;

/// Executes a command, which must succeed. Returns its output.
#[track_caller]
fn says(ground: &Ground, command: &str) -> String {
    let tried = ground.execute(plan(&run(command)));
    assert_eq!(tried.code, 0, "{command}: {}", tried.words);
    let report = ground.ok(&["show"]);
    assert!(!report.contains("was not taken"), "{command}: {report}");
    let output = report.split("Output:\n````text\n").nth(1);
    let output = output.and_then(|rest| rest.split("\n````").next());
    output.unwrap_or_default().to_owned()
}

/// Returns a repository with large files. `process` selects git's protocol for long-running
/// filters.
fn with_large_files(process: bool) -> Ground {
    let ground = Ground::new();
    let repo = &ground.repo;
    let program = repo.beside("home/lfs.sh");
    let text = program.to_str().unwrap();
    std::fs::write(&program, LFS).unwrap();
    if process {
        let server = repo.beside("home/server.sh");
        std::fs::write(&server, LFS_PROCESS.replace("LFS", text)).unwrap();
        // In the sandbox the filter can only write to the command's `TMPDIR`. Outside it uses the
        // home directory of the test.
        let (home, server) = (repo.beside("home"), server.display());
        let setting = format!("TMPDIR=\"${{TMPDIR:-{}}}\" sh '{server}'", home.display());
        repo.git(&["config", "filter.lfs.process", &setting]);
    } else {
        for way in ["clean", "smudge"] {
            let (key, value) = (format!("filter.lfs.{way}"), format!("sh '{text}' {way}"));
            repo.git(&["config", &key, &value]);
        }
    }
    repo.git(&["config", "filter.lfs.required", "true"]);
    repo.put(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    )
    .put("old.bin", "old content\n")
    .commit("large files");
    ground
}

#[test]
fn commands_commit_large_files_as_the_filter_of_the_repository_has_them() {
    for process in [false, true] {
        let ground = with_large_files(process);
        let repo = &ground.repo;
        assert_eq!(
            says(&ground, "git status --short; cat old.bin"),
            "old content"
        );

        let command = "echo changed > old.bin; echo new > new.bin; git add -A; git status --short; \
                       git commit -qm large; git status --short; git show HEAD:new.bin | head -n 1";
        let expected = "A  new.bin\nM  old.bin\nversion stand-in";
        assert_eq!(says(&ground, command), expected, "process: {process}");
        assert_eq!(repo.read("old.bin"), "changed\n");
        assert_eq!(repo.read("new.bin"), "new\n");

        // The old version exists only in the user's LFS storage, which commands can read.
        let command = "git log --oneline -1 | cut -d' ' -f2-; git checkout HEAD -- old.bin; \
                       git stash list; git show HEAD:old.bin | git cat-file --batch-check | wc -l; \
                       echo worse > old.bin; git checkout -- old.bin; cat old.bin";
        assert!(says(&ground, command).ends_with("changed"));

        ground.ok(&["restore", "0", "-y"]);
        assert_eq!(repo.read("old.bin"), "old content\n");
        ground.ok(&["restore", "2", "-y"]);
        assert_eq!(repo.read("new.bin"), "new\n");
        repo.git(&["add", "-A"]);
        let pointer = repo.git(&["show", ":new.bin"]);
        assert!(pointer.starts_with("version stand-in\noid "), "{pointer}");
        repo.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

/// Clones without `src/other.rs` and the files of earlier commits, which stay on the server.
/// `a.txt` and `src/main.rs` are present.
fn partial_clone(filter: &str) -> Ground {
    let repo = TestRepo::new();
    for number in 1..=4 {
        for path in ["a.txt", "src/main.rs", "src/other.rs", "deep/er/x"] {
            repo.write(path, format!("{path} {number}\n"));
        }
        repo.write(&format!("old{number}.txt"), "old\n");
        repo.commit(&format!("c{number}"));
    }
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);

    let (origin, clone) = (repo.beside("origin"), repo.path());
    std::fs::rename(&clone, &origin).unwrap();
    let url = format!("file://{}", origin.display());
    let filter = format!("--filter={filter}");
    let to = clone.to_str().unwrap();
    let args = ["clone", "-q", "--no-checkout", &filter, &url, to];
    repo.git_in(&repo.beside("home"), &args);
    let sparse = [
        "sparse-checkout",
        "set",
        "--no-cone",
        "/a.txt",
        "/src/main.rs",
    ];
    repo.git(&sparse);
    repo.git(&["checkout", "-q", "main"]);

    let ground = Ground { repo };
    assert!(missing(&ground) > 3);
    ground.ok(&["new", "s"]);
    ground
}

/// Counts the objects that only the server has.
fn missing(ground: &Ground) -> usize {
    let args = ["rev-list", "--objects", "--all", "--missing=print"];
    let listed = ground.repo.git(&args);
    listed.lines().filter(|line| line.starts_with('?')).count()
}

/// The supported kinds of partial clones.
const FILTERS: [&str; 2] = ["blob:none", "tree:0"];

#[test]
fn git_works_for_commands_in_a_partial_clone() {
    for filter in FILTERS {
        let ground = partial_clone(filter);
        let lacks = missing(&ground);
        ground.repo.write("a.txt", "the user's\n");

        let command = "git status --short; git log --format=%s; git diff HEAD";
        assert_eq!(
            says(&ground, command),
            "Workspace before turn 1 of s\nc4\nc3\nc2\nc1",
            "{filter}"
        );
        // Missing objects are fetched into the commands' own repository.
        let command = "git log -p --format=%s -- src/other.rs | grep '^+src'";
        assert_eq!(
            says(&ground, command),
            "+src/other.rs 4\n+src/other.rs 3\n+src/other.rs 2\n+src/other.rs 1",
            "{filter}"
        );
        let command = "echo x > a.txt; git stash -q; cat a.txt; git stash pop -q; cat a.txt";
        assert_eq!(says(&ground, command), "the user's\nx", "{filter}");
        assert_eq!(missing(&ground), lacks, "{filter}");

        for _ in 0..2 {
            ground.ok(&["restore", "0", "-y"]);
            assert_eq!(ground.repo.read("a.txt"), "the user's\n", "{filter}");
            ground.ok(&["undo"]);
            assert_eq!(ground.repo.read("a.txt"), "x\n", "{filter}");
        }
    }
}

#[test]
fn a_commit_in_a_partial_clone_is_taken_though_the_server_has_some_of_its_files() {
    for filter in FILTERS {
        let ground = partial_clone(filter);
        let lacks = missing(&ground);

        let command = "echo new > src/main.rs; git commit -qam mine; git log --format=%s -2";
        assert_eq!(says(&ground, command), "mine\nc4", "{filter}");
        // `git show` fetches an older file, which then becomes part of the commit.
        let command = "git show HEAD~3:old2.txt > older.txt; git add --sparse older.txt; \
                       git commit -qm older; git log --format=%s -2";
        assert_eq!(says(&ground, command), "older\nmine", "{filter}");

        let repo = &ground.repo;
        let of_turn = |of: &str| repo.git(&["log", "--format=%s", "-1", of]);
        assert_eq!(of_turn("refs/teddy/sessions/s^2"), "older", "{filter}");
        assert_eq!(repo.read("older.txt"), "old\n", "{filter}");

        ground.ok(&["doctor", "--fix"]);
        ground.ok(&["gc"]);
        repo.git(&["gc", "-q", "--prune=now"]);
        repo.git(&["fsck", "--no-dangling"]);
        assert_eq!(missing(&ground), lacks, "{filter}");
        ground.ok(&["undo"]);
        ground.ok(&["undo"]);
        assert_eq!(repo.read("src/main.rs"), "src/main.rs 4\n", "{filter}");
    }
}

#[test]
fn attack_5_a_commit_in_a_partial_clone_is_not_taken_if_nobody_promised_its_files() {
    let gone = "1111111111111111111111111111111111111111";
    for filter in FILTERS {
        let ground = partial_clone(filter);
        for entry in [format!("100644 blob {gone}"), format!("040000 tree {gone}")] {
            let command = format!(
                "t=$(printf '{entry}\\tx\\n' | git mktree --missing) && \
                 c=$(git commit-tree -m x -p HEAD $t) && echo $c > .git/HEAD; echo {entry} > a.txt"
            );
            let tried = ground.execute(plan(&run(&command)));
            assert_eq!(tried.code, 0, "{filter}: {}", tried.words);
            let report = ground.ok(&["show"]);
            assert!(report.contains("was not taken: git says"), "{report}");
            assert_eq!(ground.repo.read("a.txt"), format!("{entry}\n"), "{filter}");
        }
        ground.repo.git(&["fsck", "--no-dangling"]);
    }
}

#[test]
fn an_object_that_only_the_server_has_is_named_with_what_fetches_it() {
    let ground = partial_clone("tree:0");
    ground.repo.git(&["reset", "-q", "--soft", "HEAD~2"]);
    let tree = ground.repo.git(&["log", "-1", "--format=%T"]);

    let status = ground.ok(&["status"]);
    let remedy = format!("git cat-file -e {tree}");
    assert!(
        status.contains(&format!("`{remedy}` fetches it")),
        "{status}"
    );
    assert_eq!(
        says(&ground, "echo x > a.txt; git log --format=%s -1"),
        "Workspace before turn 1 of s"
    );
    ground.ok(&["undo"]);
    assert_eq!(ground.repo.read("a.txt"), "a.txt 4\n");

    let remedy: Vec<&str> = remedy.split(' ').skip(1).collect();
    ground.repo.git(&remedy);
    assert!(!ground.ok(&["status"]).contains("cannot be compared"));
}

#[test]
fn without_the_server_a_partial_clone_works_and_git_says_what_it_cannot_fetch() {
    for filter in FILTERS {
        let ground = partial_clone(filter);
        let (origin, away) = (ground.repo.beside("origin"), ground.repo.beside("away"));
        std::fs::rename(&origin, &away).unwrap();

        let command = "git log -p > log.txt 2>&1; git status --short; git commit -qam x; \
                       echo x > a.txt; git commit -qam y; git log --format=%s -1; cat log.txt";
        let output = says(&ground, command);
        assert!(
            output.contains("from promisor remote"),
            "{filter}: {output}"
        );
        assert!(output.starts_with("?? log.txt"), "{filter}: {output}");
        assert_eq!(ground.repo.read("a.txt"), "x\n");
        ground.ok(&["undo"]);
        assert_eq!(ground.repo.read("a.txt"), "a.txt 4\n", "{filter}");

        std::fs::rename(&away, &origin).unwrap();
        ground.repo.git(&["fsck", "--no-dangling"]);
    }
}

/// Number of refs, and how many of them are loose.
const MANY: [usize; 2] = [2_000, 100];

/// Creates `MANY` branches, the last of them loose.
fn make_refs(ground: &Ground) {
    let repo = &ground.repo;
    let head = repo.git(&["rev-parse", "HEAD"]);
    let mut names: Vec<String> = (0..MANY[0])
        .map(|number| format!("refs/heads/topic/{}/{number}", number % 100))
        .collect();
    names.sort();

    let (packed, loose) = names.split_at(MANY[0] - MANY[1]);
    let lines: String = packed
        .iter()
        .map(|name| format!("{head} {name}\n"))
        .collect();
    repo.put(
        ".git/packed-refs",
        format!("# pack-refs with: sorted \n{lines}"),
    );
    for name in loose {
        repo.put(format!(".git/{name}"), format!("{head}\n"));
    }
}

#[test]
fn the_git_directory_of_commands_has_few_files_however_many_refs_there_are() {
    let ground = Ground::new();
    let files = "find .git -type f | wc -l";
    let few = says(&ground, files);

    make_refs(&ground);
    for packed in [false, true] {
        if packed {
            ground.repo.git(&["pack-refs", "--all"]);
        }
        assert_eq!(says(&ground, files), few, "packed: {packed}");
        let count = "git for-each-ref | wc -l; git branch --list 'topic/7/*' | wc -l";
        assert_eq!(says(&ground, count), "2001\n20", "packed: {packed}");
    }

    let command = "git checkout -qb mine && echo x > a.txt && git commit -qam mine && \
                   git branch -f topic/7/7 && git log --format=%s -1";
    assert_eq!(says(&ground, command), "mine");
    let report = ground.ok(&["show"]);
    assert!(
        report.contains("`refs/heads/mine`, `refs/heads/topic/7/7` made by the commands"),
        "{report}"
    );
    assert_eq!(
        ground
            .repo
            .git(&["log", "--format=%s", "-1", "refs/teddy/sessions/s^2"]),
        "mine"
    );
    ground.execute(plan(&create("[b.txt](/b.txt)")));
    ground.ok(&["restore", "0", "-y"]);
    assert_eq!(ground.repo.read("a.txt"), "one\n");
}

/// Bug: each of these took back the user's edit and deleted the untracked file.
#[test]
fn going_to_the_branch_of_the_user_keeps_what_is_not_committed() {
    let ground = Ground::new();
    let repo = &ground.repo;
    repo.write("a.txt", "one\nmine\n");
    repo.write("notes.txt", "notes\n");
    for command in [
        "git checkout -q main",
        "git switch -q main",
        "git checkout -q -b topic main",
        "git stash -q; git checkout -q main; git stash pop -q || true",
    ] {
        says(&ground, command);
        let files = [repo.read("a.txt"), repo.read("notes.txt")];
        assert_eq!(files, ["one\nmine\n", "notes\n"], "{command}");
    }

    let head = repo.git(&["rev-parse", "HEAD"]);
    let commit =
        "git branch --show-current; echo x > new.txt && git add new.txt && git commit -qm made";
    assert_eq!(says(&ground, commit), "main");
    let report = ground.ok(&["show"]);
    assert!(!report.contains("made by the commands"), "{report}");
    assert_eq!(
        repo.git(&["log", "--format=%s", "-1", "refs/teddy/sessions/s^2"]),
        "made"
    );
    assert_eq!(repo.git(&["rev-parse", "main"]), head);

    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(
        says(
            &ground,
            "git branch --show-current; git rev-parse --abbrev-ref HEAD"
        ),
        "HEAD"
    );
}

/// Bug: git deleted the untracked files outside the patterns.
#[test]
fn a_sparse_checkout_keeps_untracked_files_outside_its_patterns() {
    let ground = Ground::new();
    let repo = &ground.repo;
    repo.write("lib/b.txt", "b\n");
    repo.commit("lib");
    repo.git(&["sparse-checkout", "set", "src"]);
    repo.write("lib/mine.txt", "mine\n");
    repo.write("notes/n.txt", "n\n");
    for command in [
        "git checkout -q -b topic",
        "git reset -q --hard",
        "git checkout -q main",
    ] {
        says(&ground, command);
        let files = [repo.read("lib/mine.txt"), repo.read("notes/n.txt")];
        assert_eq!(files, ["mine\n", "n\n"], "{command}");
        assert!(!repo.path().join("lib/b.txt").exists(), "{command}");
    }
}
