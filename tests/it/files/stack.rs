//! Random histories of several sessions and two checkouts, in which the user edits files and runs
//! git. Every state is compared with a simple model.

#[path = "stack/cases.rs"]
mod cases;
#[path = "stack/oracle.rs"]
mod oracle;
#[path = "stack/rules.rs"]
mod rules;
#[path = "stack/status.rs"]
mod status;
#[path = "stack/texts.rs"]
mod texts;
#[path = "stack/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

use crate::random_kills::Dice;
use world::{Op, World};

/// Operations per repository.
const LENGTH: usize = 50;
/// Total number of operations. `TEDDY_MODEL_STEPS` overrides it.
const STEPS: usize = if crate::WORLDS { 2000 } else { 50 };
/// Attempts to shorten a failing history.
const MAX_TRIES: usize = 200;

/// Runs the operations. Returns the first violation, after the story that led to it.
fn play(ops: &[Op]) -> Result<(), String> {
    let mut world = World::new();
    for (number, op) in ops.iter().enumerate() {
        if let Err(wrong) = world.step(*op) {
            let story = world.story.join("\n");
            return Err(format!("{story}\n\nstep {number}, {op:?}: {wrong}"));
        }
    }
    Ok(())
}

/// Drops operations that the failure does not need.
fn shrunk(mut ops: Vec<Op>, mut wrong: String) -> String {
    let (mut tries, mut at) = (0, ops.len());
    while at > 0 && tries < MAX_TRIES {
        at -= 1;
        tries += 1;
        let mut fewer = ops.clone();
        fewer.remove(at);
        if let Err(still) = play(&fewer) {
            (ops, wrong) = (fewer, still);
        }
    }
    wrong
}

fn history(seed: usize) -> Vec<Op> {
    let mut dice = Dice((seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..LENGTH).map(|_| Op::throw(&mut dice)).collect()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "who runs it for long says so by the environment"
)]
fn promise_b1_the_users_changes_are_kept_and_the_turns_are_as_the_target_says() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let steps = number("TEDDY_MODEL_STEPS").unwrap_or(STEPS);
    let first = number("TEDDY_MODEL_SEED").unwrap_or(1);
    let began = Instant::now();

    let (next, wrong) = (AtomicUsize::new(first), Mutex::new(BTreeMap::new()));
    let play_on = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + steps.div_ceil(LENGTH) || !wrong.lock().unwrap().is_empty() {
                return;
            }
            if let Err(story) = play(&history(seed)) {
                wrong.lock().unwrap().insert(seed, story);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            scope.spawn(play_on);
        }
    });

    if let Some((seed, story)) = wrong.into_inner().unwrap().pop_first() {
        let story = match number("TEDDY_MODEL_RAW") {
            Some(_) => story,
            None => shrunk(history(seed), story),
        };
        panic!("seed {seed}: {story}");
    }
    println!("{steps} steps in {:?}", began.elapsed());
}
