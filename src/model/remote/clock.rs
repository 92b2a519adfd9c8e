//! Waiting with limits: for silence, for the whole, and until the user has enough.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// How often the user's wish is looked at.
const TICK: Duration = Duration::from_millis(25);

/// The time of one call.
pub struct CallClock<'a> {
    /// When the whole is over.
    deadline: Instant,
    /// Says whether the user wants to stop.
    stopped: &'a dyn Fn() -> bool,
    /// Hears that it still goes on.
    beat: &'a dyn Fn(),
}

/// Why waiting ended before there was something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The user wants to stop.
    Interrupted,
    /// Nothing came for too long.
    Silent,
    /// The whole took too long.
    Late,
}

impl<'a> CallClock<'a> {
    /// Starts the time.
    pub fn new(
        total: Duration,
        stopped: &'a dyn Fn() -> bool,
        beat: &'a dyn Fn(),
    ) -> CallClock<'a> {
        // A limit beyond all calendars is a century.
        let total = total.min(Duration::from_secs(100 * 365 * 86_400));
        CallClock {
            deadline: Instant::now() + total,
            stopped,
            beat,
        }
    }

    /// Waits for a future, at most so long.
    ///
    /// # Errors
    /// Why it waits no longer.
    pub async fn within<T>(
        &self,
        silence: Duration,
        future: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        let silent = Instant::now().checked_add(silence).unwrap_or(self.deadline);
        let (end, stop) = if silent < self.deadline {
            (silent, Stop::Silent)
        } else {
            (self.deadline, Stop::Late)
        };

        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        tokio::pin!(future);
        loop {
            tokio::select! {
                // What has arrived counts, even where a limit has passed meanwhile.
                biased;
                value = &mut future => return Ok(value),
                () = sleep_until(end) => return Err(stop),
                _ = ticks.tick() => {
                    (self.beat)();
                    if (self.stopped)() { return Err(Stop::Interrupted) }
                }
            }
        }
    }

    /// Rests for a while.
    ///
    /// # Errors
    /// Why it rests no longer.
    pub async fn rest(&self, pause: Duration) -> Result<(), Stop> {
        match self.within(pause, std::future::pending::<()>()).await {
            Ok(()) | Err(Stop::Silent) => Ok(()),
            Err(stop) => Err(stop),
        }
    }
}
