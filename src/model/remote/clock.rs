//! Waits for the network until a limit is exceeded or the user cancels.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// Polling interval for cancellation.
const CLOCK_TICK: Duration = Duration::from_millis(25);

/// Time limits of a call.
pub struct CallClock<'a> {
    deadline: Instant,
    stopped: &'a dyn Fn() -> bool,
    /// Called every `TICK` while waiting.
    beat: &'a dyn Fn(),
}

/// Reason to stop waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The user cancelled.
    Interrupted,
    /// The limit for silence was exceeded.
    Silent,
    /// The limit for the whole call was exceeded.
    Late,
}

impl<'a> CallClock<'a> {
    /// Starts the clock.
    pub fn new(
        total: Duration,
        stopped: &'a dyn Fn() -> bool,
        beat: &'a dyn Fn(),
    ) -> CallClock<'a> {
        // `Instant` overflows with huge limits such as `u64::MAX` seconds.
        let total = total.min(Duration::from_secs(100 * 365 * 86_400));
        CallClock {
            deadline: Instant::now() + total,
            stopped,
            beat,
        }
    }

    /// Waits for a future, at most for `silence` and until the deadline.
    pub async fn run_with_limits<T>(
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

        let mut ticks = interval(CLOCK_TICK);
        // The default would catch up on missed ticks in a burst.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        tokio::pin!(future);
        loop {
            tokio::select! {
                // Poll the future first: data that has arrived counts even if a limit has passed.
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

    /// Sleeps. Returns early only if the deadline passes or the user cancels.
    pub async fn sleep(&self, pause: Duration) -> Result<(), Stop> {
        match self
            .run_with_limits(pause, std::future::pending::<()>())
            .await
        {
            Ok(()) | Err(Stop::Silent) => Ok(()),
            Err(stop) => Err(stop),
        }
    }
}
