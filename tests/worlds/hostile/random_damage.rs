//! Random damage to everything that a command can reach. TeDDy must still work afterwards.

use super::ground::{Ground, everything_works, plan, run};
use crate::support::seeds;

/// Damage to a target `T`. `HOME` is the user's home directory, `REPO` their repository.
const DEEDS: &[&str] = &[
    "rm -rf T",
    "rm -rf T; mkfifo T",
    "rm -rf T; mkdir -p T/x/y",
    "rm -rf T; ln -s HOME/docs T",
    "rm -rf T; ln -s REPO/.git/config T",
    "rm -rf T; ln -s T T",
    "rm -rf T; head -c 100000 /dev/urandom > T",
    "rm -rf T; : > T",
    "rm -rf T; echo 'ref: refs/heads/main' > T",
    "rm -rf T; echo 'gitdir: HOME/docs/.git' > T",
    "rm -rf T; cp -r REPO/src T",
    "printf x >> T",
    "chmod 000 T",
    "chmod 555 T",
    "mv T T.old",
    "touch T.lock",
    "mkdir -p T.lock",
    "find T -exec touch -h -d 2001-01-01 {} +",
];

/// Damage by git commands.
const WITH_GIT: &[&str] = &[
    "git checkout -q -b b$RANDOM",
    "git commit -q --allow-empty -m empty",
    "echo 2 > made; git add -A; git commit -qm made",
    "git reset -q --hard HEAD~1",
    "git stash -q",
    "git gc -q --prune=now",
    "git repack -adq",
    "git pack-refs --all",
    "git update-index --skip-worktree a.txt",
    "git update-index --assume-unchanged src/main.rs",
    "git rm -q --cached a.txt",
    "git add -f ignored",
    "git config core.fsmonitor 'echo evil > HOME/evil'",
    "git config core.hooksPath HOME",
    "git config filter.x.clean 'echo evil > HOME/evil'; echo '* filter=x' > .gitattributes",
    "git config core.worktree HOME/docs",
    "git config core.bare true",
    "git update-ref -d HEAD",
    "git symbolic-ref HEAD refs/heads/none",
    "git init -q --separate-git-dir=$PWD/elsewhere",
    "git init -q src",
    "git worktree add -q sub",
    "git replace HEAD HEAD~0",
    "git checkout -q --orphan alone; git commit -qm alone",
];

/// Values of `T`.
const TARGETS: &[&str] = &[
    ".git",
    ".git/HEAD",
    ".git/index",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/gitdir",
    ".git/refs",
    ".git/refs/heads/main",
    ".git/packed-refs",
    ".git/objects",
    ".git/objects/pack",
    ".git/objects/info",
    ".git/objects/info/alternates",
    ".git/logs",
    ".git/info",
    ".git/info/exclude",
    ".git/hooks",
    ".git/shallow",
    ".git/modules",
    "src",
    "src/main.rs",
    "a.txt",
    "ignored",
    "new",
    "new/.git",
];

/// Linear congruential generator: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Returns a script of several actions, each of which can fail.
fn script(numbers: &mut Numbers) -> String {
    let mut lines = vec!["set +e; echo 1 > ignored; git config gc.auto 0".to_owned()];
    for _ in 0..2 + numbers.below(6) {
        lines.push(match numbers.below(3) {
            0 => numbers.pick(WITH_GIT).to_owned(),
            _ => numbers.pick(DEEDS).replace('T', numbers.pick(TARGETS)),
        });
    }
    lines.push("true".to_owned());
    lines.join("\n")
}

#[test]
fn everything_works_after_random_damage_by_a_command() {
    let ground = Ground::new();
    let home = ground.repo.beside("home");
    std::fs::create_dir_all(home.join("docs")).unwrap();
    std::fs::write(home.join("docs/a"), "mine\n").unwrap();
    for seed in seeds(8, 8) {
        let mut numbers = Numbers(seed);
        let text = script(&mut numbers)
            .replace("HOME", home.to_str().unwrap())
            .replace("REPO", ground.repo.path().to_str().unwrap());
        let others = ground.others();
        let tried = ground.execute(plan(&run(&text)));
        assert!(
            matches!(tried.code, 0 | 1),
            "seed {seed}:\n{text}\n{}",
            tried.words
        );
        assert_eq!(ground.others(), others, "seed {seed}:\n{text}");
        ground.repo.git(&["checkout", "-q", "HEAD", "--", "."]);
        ground.repo.git(&["clean", "-qffdx"]);
        everything_works(&ground, &format!("seed {seed}:\n{text}\n"));
    }
}
