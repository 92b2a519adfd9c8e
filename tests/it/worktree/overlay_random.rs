//! Any command has the same result in an overlay over the files and in a copy.
//!
//! CI also runs this module as root.

use std::collections::BTreeMap;

use crate::random_kills::Dice;
use crate::support::overlay::{CHECKOUT, OVERLAY, files, overlays, project, run};
use crate::support::{TestRepo, sample, seeds};

/// Changes to files, each tried in an overlay and in a checkout.
const DEEDS: [&str; 30] = [
    "true",
    "echo more >> src/a.txt",
    "rm src/b.txt",
    "rm -r src",
    "rm -r src; mkdir src; echo new > src/n.txt",
    "rm -r src; echo file > src",
    "rm -r src; ln -s d src",
    "rm d/e; mkdir d/e; echo x > d/e/x",
    "mv src/a.txt src/z.txt",
    "mv src moved",
    "cp -r src copied; rm -r src; mv copied src",
    "chmod +x run.sh",
    "chmod -x run.sh; chmod 600 src/a.txt",
    "echo s > run.sh.tmp; mv run.sh.tmp run.sh",
    "ln -s a.txt src/link; ln src/b.txt src/hard; echo both >> src/hard",
    "rm untracked.txt; echo new > new.txt; mkdir empty",
    "mkdir -p target; echo ignored > target/new; echo l > a.log; mkdir -p src/target; echo k > src/target/kept",
    "rm .gitignore; echo l > b.log",
    "echo '*.txt' > src/.gitignore; echo q > src/q.txt; echo r > src/r.md",
    "mkdir -p target; mv src/a.txt target/a.txt",
    "git init -q inner; echo x > inner/x",
    "git init -q inner; cd inner; git config user.name a; git config user.email a@b; echo x > x; git add x; git commit -qm x",
    "mkfifo pipe; echo p > p.txt",
    "rm -r src/deep; mkfifo src/deep",
    "echo KEY=3 > .env.local; echo a > credentials.json",
    "git rm -q src/b.txt; git mv src/a.txt a.txt",
    "mkdir -p target; echo m > target/mine; git add -f target/mine; echo n > n",
    "rm -rf .git; echo n > n",
    "rm -rf ./* .gitignore",
    "echo bad; exit 3",
];

#[test]
fn what_a_command_does_comes_to_the_same_over_the_files_and_in_a_copy() {
    if !overlays() {
        return;
    }
    let mut wrong = Vec::new();
    for deed in sample(DEEDS, 7, 0) {
        let [over, copy] = [OVERLAY, CHECKOUT].map(|backend| outcome(&project(), backend, &[deed]));
        if over != copy {
            wrong.push(format!("{deed}:\nover {over:#?}\ncopy {copy:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn any_deeds_one_after_another_come_to_the_same_over_the_files_and_in_a_copy() {
    if !overlays() {
        return;
    }
    for seed in seeds(1, 4) {
        let mut dice = Dice(seed);
        // The two backends differ in what the next turn sees of nested repositories and ignored
        // files.
        let apart = ["target", "git init"];
        let deeds: Vec<&str> = std::iter::repeat_with(|| DEEDS[dice.below(DEEDS.len())])
            .filter(|deed| !apart.iter().any(|word| deed.contains(word)))
            .take(4)
            .collect();
        let [over, copy] = [OVERLAY, CHECKOUT].map(|backend| outcome(&project(), backend, &deeds));
        assert_eq!(over, copy, "seed {seed}: {deeds:#?}");
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// Exit codes of teddy.
    codes: Vec<i32>,
    /// Files of the newest turn.
    recorded: String,
    /// What TeDDy reports as left out.
    left_out: String,
    files: BTreeMap<String, Vec<u8>>,
}

/// Runs each command in its own turn.
fn outcome(repo: &TestRepo, backend: &str, deeds: &[&str]) -> Outcome {
    let codes = deeds
        .iter()
        .map(|deed| run(repo, backend, deed).code)
        .collect();
    let meta = repo.done(&["show", "@", "meta.yaml"]);
    let left_out = meta
        .split_once("not_captured:")
        .map_or("", |(_, rest)| rest);
    Outcome {
        codes,
        recorded: repo.git(&["ls-tree", "-r", "teddy/sessions/s^2"]),
        left_out: left_out
            .lines()
            .take_while(|line| !line.starts_with(char::is_alphabetic))
            .collect(),
        files: files(&repo.path()),
    }
}
