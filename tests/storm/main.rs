//! A storm of random kills, with a user who saves meanwhile:
//! `cargo test --features storm --test storm -- [kills] [seconds] [seed] [files] [program]`.
#![allow(clippy::print_stdout, reason = "a program that reports")]

mod gale;
mod rig;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = arguments
        .iter()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let number = |at: usize, default: u64| numbers.get(at).copied().unwrap_or(default);
    let plan = gale::Plan {
        kills: usize::try_from(number(0, 1000)).expect("a number"),
        limit: Duration::from_secs(number(1, 3600)),
        seed: number(2, 1),
        look_every: 25,
    };
    let program = arguments
        .get(4)
        .map_or(env!("CARGO_BIN_EXE_teddy"), String::as_str);
    let rig = Arc::new(rig::Rig::new(
        program.as_ref(),
        usize::try_from(number(3, 2000)).expect("a number"),
    ));
    let started = Instant::now();
    let tally = gale::storm(&rig, &plan);
    println!(
        "seed {} after {:?}: {tally:#?}",
        plan.seed,
        started.elapsed()
    );
    if tally.wrong.is_empty() {
        return ExitCode::SUCCESS;
    }
    if let Ok(rig) = Arc::try_unwrap(rig) {
        println!("kept for a look: {}", rig.keep().display());
    }
    ExitCode::FAILURE
}
