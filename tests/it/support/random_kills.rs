//! The storm: kills commands at random moments while a user keeps saving files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::killed_repo::{Rig, Saver, body, each_file, fsck, lost, said, torn, verdict};

pub struct Plan {
    /// Ends the storm after this many kills.
    pub kills: usize,
    pub seed: u64,
    /// Ends the storm after this time, even with fewer kills.
    pub limit: Duration,
    /// Rounds between two checks.
    pub look_every: usize,
}

#[derive(Debug, Default)]
pub struct Tally {
    /// Processes that were still running when they were killed.
    pub kills: usize,
    pub by_command: BTreeMap<&'static str, usize>,
    /// Killed while an intent was on disk.
    pub under_way: usize,
    /// Processes that ended before their kill, by exit code.
    pub ended: BTreeMap<i32, usize>,
    /// Errors of the failed ones.
    pub failures: BTreeMap<String, usize>,
    /// Saves by the user.
    pub saves: usize,
    /// Saves that a command replaced or merged. They must be reachable in git.
    pub replaced: usize,
    /// Files in `teddy/undo/rescued`.
    pub rescued: usize,
    pub turns: usize,
    /// Commits on the branch.
    pub landed: usize,
    /// Violated guarantees.
    pub wrong: Vec<String>,
}

/// Linear congruential generator, so that a seed gives the same storm on every machine.
pub struct Dice(pub u64);

impl Dice {
    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit.max(1)
    }
}

/// Files with a lower number are written by plans, and sometimes by the user.
const CONTESTED: usize = 60;

pub fn storm(rig: &Arc<Rig>, plan: &Plan) -> Tally {
    let first = rig.plan("0", &[Rig::file(0)], None);
    rig.must(&["new", "storm"]);
    rig.must(&["execute", &first, "-y"]);
    let mut users_state = rig.users_state();
    // `land` can change these. `land_verdict` checks them.
    users_state.retain(|part, _| part != "index" && part != "refs");
    let saver = Arc::new(Mutex::new(Saver::default()));
    let stop = Arc::new(AtomicBool::new(false));
    let user = work(
        Arc::clone(rig),
        Arc::clone(&saver),
        Arc::clone(&stop),
        plan.seed,
    );
    let mut tally = Tally::default();
    let mut dice = Dice(plan.seed);
    let mut durations: BTreeMap<&'static str, Duration> = BTreeMap::new();
    let started = Instant::now();
    let mut round = 0;
    while tally.kills < plan.kills && started.elapsed() < plan.limit && tally.wrong.is_empty() {
        round += 1;
        strike(rig, round, &mut dice, &mut durations, &mut tally);
        if round % plan.look_every == 0 {
            let saver = saver.lock().expect("nobody panics with it");
            look(rig, &saver, &users_state, &mut tally);
        }
    }
    stop.store(true, Ordering::SeqCst);
    user.join().expect("the user ends well");
    let saver = saver.lock().expect("nobody panics with it");
    look(rig, &saver, &users_state, &mut tally);
    tally.saves = saver.count;
    let there = |path: &str, tag: &str| {
        std::fs::read(rig.path().join(path)).is_ok_and(|bytes| bytes == body(tag))
    };
    tally.replaced = saver
        .saved
        .iter()
        .filter(|(path, tag)| !there(path, tag))
        .count();
    each_file(&rig.path().join(".git/teddy/undo/rescued"), &mut |_| {
        tally.rescued += 1
    });
    tally.turns = rig
        .git(&[
            "rev-list",
            "--first-parent",
            "--count",
            "teddy/sessions/storm",
        ])
        .parse()
        .unwrap_or(0);
    tally
}

fn work(
    rig: Arc<Rig>,
    saver: Arc<Mutex<Saver>>,
    stop: Arc<AtomicBool>,
    seed: u64,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut dice = Dice(seed ^ 0x5eed);
        while !stop.load(Ordering::SeqCst) {
            let path = match dice.below(4) {
                0 => Rig::file(dice.below(CONTESTED)),
                1 => format!("own/new{:02}.txt", dice.below(40)),
                _ => Rig::file(CONTESTED + dice.below(200)),
            };
            saver
                .lock()
                .expect("nobody panics with it")
                .save(&rig, &path, dice.below(2) == 0);
            std::thread::sleep(Duration::from_millis(5 + dice.below(40) as u64));
        }
    })
}

/// Starts a random command and kills it at a random moment.
fn strike(
    rig: &Rig,
    round: usize,
    dice: &mut Dice,
    durations: &mut BTreeMap<&'static str, Duration>,
    tally: &mut Tally,
) {
    let turn = dice.below(tally.turns.max(3)).to_string();
    let plan;
    let (name, args): (&'static str, Vec<&str>) = match dice.below(15) {
        0..=4 => {
            let files: Vec<String> = (0..12)
                .map(|_| Rig::file(dice.below(CONTESTED)))
                .chain([format!("new/{round}.txt")])
                .collect();
            let (from, to) = (
                Rig::file(dice.below(CONTESTED)),
                Rig::file(dice.below(CONTESTED)),
            );
            let gone = Rig::file(dice.below(CONTESTED));
            let command = format!("cp {from} {to} 2>/dev/null; rm -f {gone}; true");
            plan = rig.plan(
                &round.to_string(),
                &unique(files),
                (dice.below(3) == 0).then_some(command.as_str()),
            );
            (
                "execute",
                vec!["execute", plan.as_str(), "-y", "--no-replan"],
            )
        }
        5 | 6 => ("restore", vec!["restore", &turn, "--theirs", "-y"]),
        7 => ("restore --exact", vec!["restore", &turn, "--exact", "-y"]),
        8 => ("undo", vec!["undo", "--ours", "-y"]),
        9 => ("redo", vec!["redo", "--theirs", "-y"]),
        10..=12 => {
            // Only this turn writes the file, so landing it cannot conflict.
            let path = format!("landed/{round}.txt");
            let file = rig.plan(&format!("land {round}"), &[path], None);
            rig.run(&["execute", &file, "-y", "--no-replan"]);
            ("land", vec!["land", "@", "--no-edit"])
        }
        _ => ("doctor --fix", vec!["doctor", "--fix"]),
    };
    let usual = durations
        .get(name)
        .copied()
        .unwrap_or(Duration::from_millis(900));
    let wait = usual.mul_f64(dice.below(1150) as f64 / 1000.0);
    let mut command = rig.teddy(&args);
    let output = std::fs::File::create(rig.beside("output")).expect("a writable folder");
    command
        .stdout(output.try_clone().expect("a file"))
        .stderr(output);
    let started = Instant::now();
    let mut child = command.spawn().expect("the program starts");
    let intent = rig.path().join(".git/teddy/pending.json");
    let wait = if dice.below(3) == 0 {
        // Hit the time in which the command writes the user's files.
        while !intent.exists() && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        started.elapsed() + Duration::from_micros(dice.below(60_000) as u64)
    } else {
        wait
    };
    while started.elapsed() < wait && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(Duration::from_micros(500));
    }
    let ended = child.try_wait().expect("a child");
    if let Some(status) = ended {
        let took = started.elapsed();
        durations.insert(name, (usual * 3 + took) / 4);
        let code = status.code().unwrap_or(-1);
        *tally.ended.entry(code).or_default() += 1;
        if code != 0 && code != 4 {
            let text = std::fs::read_to_string(rig.beside("output")).unwrap_or_default();
            let line = text
                .lines()
                .find(|line| line.contains("error") || line.contains("panick"))
                .unwrap_or_default()
                .to_owned();
            *tally
                .failures
                .entry(format!("{name} {code}: {line}"))
                .or_default() += 1;
            if !matches!(code, 1 | 3) {
                tally
                    .wrong
                    .push(format!("`teddy {args:?}` ended with {code}: {text}"));
            }
        }
        return;
    }
    child.kill().expect("our own child");
    child.wait().expect("our own child");
    durations.insert(name, usual.mul_f64(1.01));
    tally.kills += 1;
    *tally.by_command.entry(name).or_default() += 1;
    tally.under_way += usize::from(intent.exists());
}

fn unique(mut paths: Vec<String>) -> Vec<String> {
    paths.sort();
    paths.dedup();
    paths
}

/// Checks all guarantees. The caller holds `saver`, so the user does not save meanwhile.
fn look(rig: &Rig, saver: &Saver, users_state: &BTreeMap<String, Vec<u8>>, tally: &mut Tally) {
    // Even before a recovery no file is torn or lost, and all refs point to complete objects.
    for what in torn(rig)
        .into_iter()
        .chain(lost(rig, saver))
        .chain(fsck(rig))
    {
        tally.wrong.push(format!("before the recovery: {what}"));
    }
    let output = rig.run(&["doctor", "--fix"]);
    if !output.status.success() {
        tally.wrong.push(format!("recover: {}", said(&output)));
    }
    tally.wrong.extend(verdict(rig, saver, users_state));
    tally.landed = land_verdict(rig, &mut tally.wrong);
    let plan = rig.plan(
        &format!("look {}", tally.kills),
        &["looked.txt".to_owned()],
        None,
    );
    let output = rig.run(&["execute", &plan, "-y", "--no-replan"]);
    if !output.status.success() {
        tally
            .wrong
            .push(format!("the session is not usable: {}", said(&output)));
    }
    tally.turns = rig
        .git(&[
            "rev-list",
            "--first-parent",
            "--count",
            "teddy/sessions/storm",
        ])
        .parse()
        .unwrap_or(3);
}

/// Checks that each landing happened completely or not at all: the branch has exactly the recorded
/// commits, the index matches the branch, and no lock or scratch worktree is left. Returns the
/// number of landed commits.
fn land_verdict(rig: &Rig, wrong: &mut Vec<String>) -> usize {
    let log = rig.must(&["--json", "log", "-n", "100000"]);
    let rows: serde_json::Value = serde_json::from_str(&log).expect("a log");
    let rows = rows.as_array().into_iter().flatten();
    let commits = rows.flat_map(|row| row["landed"]["commits"].as_array().into_iter().flatten());
    let recorded: BTreeSet<&str> = commits.filter_map(|row| row["commit"].as_str()).collect();
    let listed = rig.git(&["rev-list", "--min-parents=1", "main"]);
    let on_branch: BTreeSet<&str> = listed.lines().collect();
    if recorded != on_branch {
        let differ = recorded.symmetric_difference(&on_branch);
        wrong.push(format!(
            "a landing is half done: {:?}",
            differ.collect::<Vec<_>>()
        ));
    }

    let names = rig.git(&["for-each-ref", "--format=%(refname)"]);
    let names = super::users_refs(&names);
    if names != "refs/heads/main" {
        wrong.push(format!("refs were made: {names}"));
    }
    let staged = rig.git(&["diff", "--cached", "--name-status", "HEAD"]);
    if !staged.is_empty() {
        wrong.push(format!("the index is not that of HEAD: {staged}"));
    }
    let worktrees = rig.git(&["worktree", "list", "--porcelain"]);
    if worktrees.contains("teddy-land") {
        wrong.push(format!("a scratch worktree survived: {worktrees}"));
    }
    let left = ["index.lock", "teddy-index.own", "HEAD.lock"];
    let left = left
        .iter()
        .filter(|name| rig.path().join(".git").join(name).exists());
    wrong.extend(left.map(|name| format!("`{name}` survived")));
    on_branch.len()
}
