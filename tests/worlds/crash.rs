//! Random kills, and every fault at every failpoint.

use std::sync::Arc;
use std::time::Duration;

use crate::killed_repo::Rig;
use crate::random_kills::{Plan, storm};

#[path = "../it/crash/crowd.rs"]
mod crowd;
#[path = "../it/crash/damaged_state.rs"]
mod damaged_state;
#[path = "../it/crash/faults.rs"]
mod faults;

/// `TEDDY_KILLS`, `TEDDY_SEED` and `TEDDY_STORM_SECONDS` change the length.
#[test]
fn a_storm_of_random_kills_loses_nothing() {
    let number = |name: &str, default: u64| {
        let value = teddy::host::env::var(name).and_then(|value| value.parse().ok());
        value.unwrap_or(default)
    };
    let kills = usize::try_from(number("TEDDY_KILLS", 60)).unwrap();
    let rig = Arc::new(Rig::new(env!("CARGO_BIN_EXE_teddy").as_ref(), 2000));
    let plan = Plan {
        kills,
        seed: number("TEDDY_SEED", 1),
        limit: Duration::from_secs(number("TEDDY_STORM_SECONDS", 60)),
        look_every: 25,
    };
    let tally = storm(&rig, &plan);
    assert_eq!(tally.wrong, [""; 0], "{tally:#?}");
    assert!(tally.kills > 4 && tally.saves > 0, "{tally:#?}");
}
