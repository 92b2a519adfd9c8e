//! Random histories in which partial and complete worktrees must look the same to plans and give
//! the same results.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use crate::plans::{create, execute, plan, read, replace};
use crate::random_kills::Dice;
use crate::support::{Output, TestRepo, names, seeds};
use teddy::git::worktree;
use teddy::git::worktree::{Extent, WorktreeTarget};

/// Some paths are directories of others.
const PATHS: [&str; 11] = [
    "a",
    "a/b",
    "a/b/c",
    "d/x.txt",
    "d/y.o",
    "d/e/f.txt",
    "d/e",
    "d/.gitignore",
    ".gitignore",
    "l",
    "l/m",
];

/// Puts a random file, directory or symlink at a path, or nothing.
fn put(top: &Path, path: &str, dice: &mut Dice) {
    let place = top.join(path);
    for above in Path::new(path).ancestors().skip(1) {
        let above = top.join(above);
        if above.is_symlink() || above.is_file() {
            std::fs::remove_file(above).unwrap();
        }
    }
    if place.is_dir() && !place.is_symlink() {
        std::fs::remove_dir_all(&place).unwrap();
    } else {
        let _ = std::fs::remove_file(&place);
    }
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    // As in git, a file may keep other line ends than its attributes say while its content is the same.
    let lines = if path.ends_with(".txt") {
        ["1\r\n", "2\r\n", "3\r\n"]
    } else {
        ["1\n", "2\r\n", "3\n"]
    };
    match (
        path.rsplit_once("/.git").map_or(path, |(_, name)| name),
        dice.below(8),
    ) {
        (_, 0) => {}
        (".gitignore" | "ignore", _) => {
            std::fs::write(place, ["*.o\n", "/a\n"][dice.below(2)]).unwrap()
        }
        (_, 1) => symlink(["d", "d/e", "nowhere"][dice.below(3)], place).unwrap(),
        _ => std::fs::write(place, lines[dice.below(3)]).unwrap(),
    }
}

/// Returns what a plan finds at a path: the content of a file or the target of a symlink.
fn found(top: &Path, path: &str) -> String {
    for above in Path::new(path).ancestors().skip(1) {
        if top.join(above).is_symlink() {
            return format!("below the link {}", above.display());
        }
    }
    let place = top.join(path);
    match std::fs::symlink_metadata(&place) {
        Err(error) => format!("{:?}", error.kind()),
        Ok(metadata) if metadata.is_dir() => "folder".to_owned(),
        Ok(metadata) if metadata.is_symlink() => format!("{:?}", std::fs::read_link(&place)),
        Ok(metadata) => format!("{:o} {:?}", metadata.mode(), std::fs::read(&place).unwrap()),
    }
}

/// Random steps in one repository: partial and complete checkouts of commits, writes by plans,
/// arbitrary commands, and interrupted runs.
fn live(seed: u64) {
    let mut dice = Dice(seed);
    // Constant attributes: like git, TeDDy does not rewrite a file only because its attributes
    // changed.
    let repo = TestRepo::new().file("d/.gitattributes", "*.txt text eol=crlf\n");
    let commits: Vec<String> = (0..5)
        .map(|step| {
            for _ in 0..4 {
                put(&repo.path(), PATHS[dice.below(PATHS.len())], &mut dice);
            }
            repo.write("z", step.to_string());
            repo.git(&["add", "-Af", "."]);
            repo.commit("step")
        })
        .collect();
    let (user, root) = (repo.open(), repo.beside("worktrees"));
    let open = |session: &str, at: &str, extent: Extent<'_>| {
        let aim = WorktreeTarget::unwatched(at.parse().unwrap(), extent);
        let opened = worktree::session_worktree(&user, &root, session, aim);
        opened.unwrap_or_else(|error| panic!("seed {seed}: {error:#}"))
    };
    let (part, whole) = (root.join("part"), root.join("whole"));
    for step in 0..16 {
        let at = &commits[dice.below(commits.len())];
        if dice.below(3) == 0 {
            open("part", at, Extent::All);
            let tree = repo.git(&["rev-parse", &format!("{at}^{{tree}}")]);
            let tracked = repo.git(&["ls-tree", "-rz", "--name-only", at]);
            worktree::remove_session_worktree(&user, "whole").unwrap();
            open("whole", at, Extent::All);
            for path in tracked.split('\0') {
                let (is, must) = (found(&part, path), found(&whole, path));
                assert_eq!(is, must, "seed {seed} step {step} {path} of {tree}");
            }
            // Only ignored files survive a switch.
            for name in names(&part).iter().filter(|name| !name.ends_with('/')) {
                let is_tracked = tracked.split('\0').any(|path| path == name);
                let is_ignored = name.ends_with(".o") || name.starts_with("a");
                assert!(
                    is_tracked || is_ignored,
                    "seed {seed} step {step}: {name} stayed"
                );
            }
            (0..dice.below(3)).for_each(|_| put(&part, PATHS[dice.below(PATHS.len())], &mut dice));
            continue;
        }
        let named: Vec<&str> = (0..=dice.below(2))
            .map(|_| PATHS[dice.below(PATHS.len())])
            .collect();
        let paths: Vec<Vec<u8>> = named.iter().map(|path| path.as_bytes().to_vec()).collect();
        open("part", at, Extent::Paths(&paths));
        worktree::remove_session_worktree(&user, "whole").unwrap();
        open("whole", at, Extent::All);
        for path in named.iter().flat_map(|path| Path::new(path).ancestors()) {
            let path = path.to_str().unwrap();
            let (is, must) = (found(&part, path), found(&whole, path));
            let is_left = path.ends_with(".o") || path.starts_with('a');
            assert!(
                is == must || is_left,
                "seed {seed} step {step}, {path} at {at}: {is} instead of {must}"
            );
        }
        let record = repo.path().join(".git/teddy/worktrees/part");
        match dice.below(8) {
            0 => drop(std::fs::remove_file(record.join("index"))),
            1 => drop(std::fs::remove_file(record.join("tree"))),
            2 => drop(std::fs::remove_dir_all(&part)),
            _ => put(&part, named[0], &mut dice),
        }
    }
}

#[test]
fn a_part_shows_plans_what_the_whole_does_in_any_world() {
    for seed in seeds(1, 12) {
        live(seed * 7919 + 13);
    }
}

/// Two equal projects: sessions use partial worktrees in the first, complete ones in the second.
struct Twins([TestRepo; 2]);

impl Twins {
    fn new() -> Twins {
        let twin = || {
            let repo = TestRepo::new().file(".gitignore", "*.o\n");
            for number in 0..12 {
                repo.write(&format!("d{}/f{number}", number % 3), format!("{number}\n"));
            }
            repo.commit("one");
            repo
        };
        Twins([twin(), twin()])
    }

    /// Runs teddy in both projects and returns the exit code and files of each.
    fn run(&self, args: &[&str], input: &str) -> [String; 2] {
        let mut ended = Vec::new();
        for (repo, points) in self.0.iter().zip(["", "whole-worktree=return"]) {
            std::fs::write(repo.beside("plan.md"), input).unwrap();
            let mut command = repo.teddy_command(args);
            command.current_dir(repo.path()).env("FAILPOINTS", points);
            let output = Output::of(&mut command);
            let tip = "refs/teddy/sessions/";
            let tips = repo.git(&["for-each-ref", "--format=%(refname)", tip]);
            let trees = tips.lines().map(|tip| {
                let commit = repo.git(&["log", "-1", "--format=%P", tip]);
                let after = commit
                    .split(' ')
                    .nth(1)
                    .map(|after| format!("{after}^{{tree}}"));
                format!(
                    "{tip} {:?}",
                    after.map(|after| repo.git(&["rev-parse", &after]))
                )
            });
            let trees: Vec<String> = trees.collect();
            ended.push(format!("{} {} {trees:?}", output.code, repo.tree()));
        }
        ended.try_into().unwrap()
    }

    fn each(&self, change: impl Fn(&TestRepo)) {
        self.0.iter().for_each(change);
    }
}

/// Returns a plan that creates, replaces and reads files, and sometimes runs a command that sees
/// all of them.
fn any_plan(dice: &mut Dice) -> String {
    let mut actions = Vec::new();
    for _ in 0..=dice.below(2) {
        let at = dice.below(15);
        let path = match dice.below(4) {
            0 => format!("d{}/n{at}", at % 4),
            1 => format!("n{}/deep/{at}.o", at % 2),
            _ => format!("d{}/f{at}", at % 3),
        };
        let content = format!("{}\n", dice.below(1_000_000));
        actions.push(match dice.below(5) {
            0 => read(&path),
            1 => create(&path, &content),
            _ => replace(&path, &content),
        });
    }
    if dice.below(3) == 0 {
        let look = "find d? n? -type f 2>/dev/null | LC_ALL=C sort | xargs tail -n +1 > seen";
        let also = ["", "; rm -f d1/f1", "; mv d2/f2 d2/moved.o", "; rm -rf d0"];
        actions.push(execute(&format!("{look}{}", also[dice.below(4)])));
    }
    plan("Work", &actions)
}

/// Runs random steps in both projects. Returns the number of commands that succeeded.
fn live_as_twins(seed: u64) -> usize {
    let (twins, mut dice) = (Twins::new(), Dice(seed));
    twins.run(&["new", "first"], "");
    let first = plan("Work", &[create("first", "1\n")]);
    twins.run(&["execute", "../plan.md", "-y"], &first);
    let sizes = twins.0.each_ref().map(|repo| {
        let worktrees = worktree::session_worktrees(&repo.open());
        names(&worktrees[0].path).len()
    });
    assert_eq!(sizes, [3, 18], "one is a part, the other one is whole");
    let (mut story, mut well) = (Vec::new(), 0);
    for step in 0..14 {
        let name = format!("s{step}");
        let number = dice.below(step + 1).to_string();
        let text = any_plan(&mut dice);
        let args: Vec<&str> = match dice.below(12) {
            0 => vec!["undo"],
            1 => vec!["redo"],
            2 => vec!["restore", &number, "--theirs", "-y"],
            3 => vec!["branch", &name],
            4 => vec!["switch", "first"],
            5 => {
                let path = format!("d{}/f{}", step % 3, step % 12);
                twins.each(|repo| repo.write(&path, format!("user {step}\n")));
                continue;
            }
            _ => vec!["execute", "../plan.md", "-y"],
        };
        story.push(format!("{args:?} {text}"));
        let [part, whole] = twins.run(&args, &text);
        assert_eq!(part, whole, "seed {seed}: {}", story.join("\n"));
        well += usize::from(part.starts_with("0 "));
    }
    well
}

#[test]
fn sessions_with_parts_end_as_sessions_with_whole_worktrees_do() {
    let well: usize = (0..if crate::WORLDS { 5 } else { 1 })
        .map(|seed| live_as_twins(seed * 104_729 + 5))
        .sum();
    assert!(
        well > if crate::WORLDS { 30 } else { 6 },
        "only {well} commands ended well"
    );
}
