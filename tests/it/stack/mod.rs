//! Random histories of several sessions, two checkouts, a user who edits and a git that moves: the
//! user's changes are kept, and the turns' changes are as the target says.

mod cases;
mod oracle;
mod rules;
mod world;

use std::time::Instant;

use crate::gale::Dice;
use world::{Op, World};

/// How many things happen in one repository.
const LENGTH: usize = 50;
/// How many things happen in all, unless `TEDDY_MODEL_STEPS` says another number.
const STEPS: usize = 400;
/// How often a history that fails is tried without some of it.
const MAX_TRIES: usize = 200;

/// Lets everything happen; returns what is wrong, and the story up to it.
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

/// Leaves out what does not matter for a failure.
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

    for world in 0..steps.div_ceil(LENGTH) {
        let seed = (first + world) as u64;
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ops: Vec<Op> = (0..LENGTH).map(|_| Op::throw(&mut dice)).collect();
        if let Err(wrong) = play(&ops) {
            let wrong = if number("TEDDY_MODEL_RAW").is_some() {
                wrong
            } else {
                shrunk(ops, wrong)
            };
            panic!("seed {seed}: {wrong}");
        }
    }
    println!("{steps} steps in {:?}", began.elapsed());
}
