//! One call: sends the request, retries if that can help, and reads the answer within the limits.
//!
//! Retries only as long as nothing of the answer has arrived, and never follows a redirect: the key
//! belongs to one origin.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::Remote;
use super::adapt::Adaptation;
use super::draft::provider_message;
use super::key::{is_loopback, origin};
use super::reader::AnswerReader;
use crate::host::http::header::{ACCEPT, LOCATION, RETRY_AFTER};
use crate::host::http::{self, Client, RequestBuilder, Response, StatusCode};
use crate::model::{Finish, ModelAnswer, ModelError, TokenUsage};

/// In bytes, of an error response.
const MAX_REFUSAL: usize = 64 << 10;

pub struct Call<'a> {
    remote: &'a Remote,
    client: Client,
    /// What the provider reported in the last attempt.
    used: Cell<TokenUsage>,
}

pub struct AttemptFailure {
    pub error: ModelError,
    pub again: RetryAdvice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    No,
    /// `None` leaves the length to the client.
    After(Option<Duration>),
    /// With an adapted body.
    Adapted,
}

impl From<ModelError> for AttemptFailure {
    fn from(error: ModelError) -> AttemptFailure {
        AttemptFailure {
            error,
            again: RetryAdvice::No,
        }
    }
}

impl AttemptFailure {
    /// A timeout without any data doesn't explain why nothing arrived; the previous failure does.
    fn or(self, before: Option<ModelError>) -> AttemptFailure {
        match (&self.error, before) {
            (ModelError::Timeout { partial, .. }, Some(before)) if partial.is_empty() => {
                before.into()
            }
            _ => self,
        }
    }
}

impl<'a> Call<'a> {
    pub fn new(remote: &'a Remote) -> Result<Call<'a>, ModelError> {
        let configure = |builder: http::ClientBuilder| {
            builder
                // A redirect could take the key to another origin.
                .redirect(http::redirect::Policy::none())
                .connect_timeout(remote.limits.connect)
                .referer(false)
        };
        let (is_here, is_plain) = (is_loopback(&remote.url), remote.url.scheme() == "http");
        let has_key = !remote.secrets.is_empty();
        let client = match is_here {
            // Loading the system's certificates takes longer than a local server takes to answer.
            true if is_plain => http::plain_client(configure),
            true => http::client(|builder| configure(builder).no_proxy()),
            // A proxy can be anywhere, and an unencrypted key stays in the local network.
            false if is_plain && has_key => http::client(|builder| configure(builder).no_proxy()),
            false => http::client(configure),
        };

        let client = client.map_err(|error| {
            ModelError::Settings(format!(
                "cannot make an HTTP client: {}",
                remote.secrets.scrub(&http::root_cause(&error))
            ))
        })?;
        Ok(Call {
            remote,
            client,
            used: Cell::default(),
        })
    }

    pub async fn run(
        &self,
        mut body: Value,
        mut adaptations: Vec<Adaptation>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        // Shared by the clock, which reports silence, and the reader.
        let watch = RefCell::new(watch);
        let beat = || (watch.borrow_mut())("");
        let clock = CallClock::new(self.remote.limits.total, &*self.remote.stopped, &beat);
        let mut repetition = 0;
        let mut before = None;

        loop {
            let failure = match self
                .attempt(&body, &clock, &mut |text| (watch.borrow_mut())(text))
                .await
            {
                Ok(answer) => {
                    if adaptations != self.remote.remembered.read() {
                        self.remote.remembered.write(&adaptations);
                    }
                    return Ok(answer);
                }
                Err(failure) => failure.or(before.take()),
            };
            match failure.again {
                // Each change is possible only once, so this can't loop.
                RetryAdvice::Adapted => match self.adapt(&mut body, &failure.error) {
                    Some(adaptation) => adaptations.push(adaptation),
                    None => return Err(failure.error),
                },
                RetryAdvice::After(asked) if repetition < self.remote.limits.retries => {
                    let pause = retry_pause(
                        self.remote.limits.pause,
                        repetition,
                        asked,
                        (self.remote.jitter)(),
                    );
                    repetition += 1;
                    self.note_retry(&failure.error, pause, repetition);

                    match clock.sleep(pause).await {
                        Ok(()) => {}
                        Err(Stop::Interrupted) => {
                            return Err(self.stopped(Stop::Interrupted, pause, ""));
                        }
                        // The deadline ends the pause. The error that caused the pause says more
                        // than a timeout.
                        Err(_) => return Err(failure.error),
                    }

                    before = Some(failure.error);
                }
                _ => return self.failed(failure.error),
            }
        }
    }

    fn failed(&self, error: ModelError) -> Result<ModelAnswer, ModelError> {
        let usage = self.used.get();
        // Tokens count, although the answer is not usable.
        if !usage.is_known() {
            return Err(error);
        }
        Ok(ModelAnswer {
            text: error.partial().unwrap_or_default().to_owned(),
            model: self.remote.id.clone(),
            usage,
            cost: None,
            finish: Finish::Failed(Box::new(error)),
        })
    }

    /// Changes a request that the server rejected. `None` if that can't help.
    fn adapt(&self, body: &mut Value, error: &ModelError) -> Option<Adaptation> {
        let (own, possible) = (
            &self.remote.settings.extra,
            self.remote.protocol.adaptations,
        );
        let adaptation = Adaptation::choose(body, &error.to_string(), own, possible)?;
        let settings = &self.remote.settings;
        let is_set = match adaptation {
            Adaptation::NoTemperature => settings.temperature.is_some(),
            Adaptation::NoLimit => settings.max_tokens.is_some(),
            _ => false,
        };
        // The user has set the others nowhere.
        if is_set {
            let name = adaptation.name();
            (self.remote.note)(&format!(
                "the server does not take `{name}`, so it is not sent"
            ));
        }
        Some(adaptation)
    }

    fn note_retry(&self, error: &ModelError, pause: Duration, repetition: u32) {
        let retries = self.remote.limits.retries;
        (self.remote.note)(&format!(
            "{error}; trying again in {:.0} s ({repetition} of {retries})",
            pause.as_secs_f64().ceil()
        ));
    }

    async fn attempt(
        &self,
        body: &Value,
        clock: &CallClock<'_>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, AttemptFailure> {
        let first = self.remote.limits.first;
        let sent = clock
            .run_with_limits(first, self.request(body).send())
            .await
            .map_err(|stop| self.stopped(stop, first, ""))?;
        let response = sent.map_err(|error| self.unsent(&error))?;

        match response.status() {
            status if status.is_success() => self.read(response, clock, watch).await,
            status if status.is_redirection() => {
                let location = response
                    .headers()
                    .get(LOCATION)
                    .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
                let location = self
                    .remote
                    .secrets
                    .scrub(location.as_deref().unwrap_or("nowhere"));
                Err(ModelError::Redirect {
                    origin: origin(&self.remote.url),
                    location,
                }
                .into())
            }
            status => Err(self.refusal(status, response, clock).await),
        }
    }

    fn request(&self, body: &Value) -> RequestBuilder {
        let mut request = self
            .client
            .post(self.remote.url.clone())
            .header(ACCEPT, "text/event-stream, application/json");
        for (name, value) in &self.remote.settings.headers.0 {
            request = request.header(name, value);
        }

        let protocol = self.remote.protocol;
        if let Some((name, version)) = protocol.version {
            request = request.header(name, version);
        }

        request = match self.remote.key.value() {
            Some(key) if protocol.is_anthropic() => request.header("x-api-key", key),
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        request.json(body)
    }

    async fn read(
        &self,
        response: Response,
        clock: &CallClock<'_>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, AttemptFailure> {
        let mut reader = AnswerReader::new(self.remote);
        let received = self.receive(&mut reader, response, clock, watch).await;
        // As a proxy does that waits for the model too long.
        let is_closed_early = received.is_ok() && reader.is_empty();
        let result = received.and_then(|()| Ok(reader.finish(watch)?));
        self.used.set(reader.usage());
        result.map_err(|failure| match failure.error {
            ModelError::Broken { .. } if is_closed_early => AttemptFailure {
                again: RetryAdvice::After(None),
                ..failure
            },
            _ => failure,
        })
    }

    async fn receive(
        &self,
        reader: &mut AnswerReader<'_>,
        mut response: Response,
        clock: &CallClock<'_>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<(), AttemptFailure> {
        while !reader.is_done() {
            let limit = if reader.is_empty() {
                self.remote.limits.first
            } else {
                self.remote.limits.idle
            };
            match clock.run_with_limits(limit, response.chunk()).await {
                Ok(Ok(Some(bytes))) => reader.take(&bytes, watch)?,
                Ok(Ok(None)) => break,
                // Nothing of the answer has arrived, so a retry can't repeat any of it.
                Ok(Err(error)) if reader.is_empty() => {
                    let error = ModelError::Broken {
                        detail: self.remote.secrets.scrub(&http::root_cause(&error)),
                        partial: String::new(),
                    };
                    return Err(AttemptFailure {
                        error,
                        again: RetryAdvice::After(None),
                    });
                }
                // The model had already finished, so the answer is complete even if the connection
                // then falls silent or breaks.
                _ if reader.has_finish() => break,
                Ok(Err(error)) => {
                    let detail = self.remote.secrets.scrub(&http::root_cause(&error));
                    return Err(ModelError::Broken {
                        detail,
                        partial: reader.take_text(),
                    }
                    .into());
                }
                Err(stop) => return Err(self.stopped(stop, limit, &reader.take_text()).into()),
            }
        }

        Ok(())
    }

    /// Before any response arrived.
    fn unsent(&self, error: &http::Error) -> AttemptFailure {
        let detail = self.remote.secrets.scrub(&http::root_cause(error));
        if error.is_builder() {
            return ModelError::Settings(format!(
                "cannot make a request to model `{}`: {detail}",
                self.remote.name
            ))
            .into();
        }

        // Local servers don't appear within seconds, so retrying is pointless.
        let is_absent = error.is_connect() && is_loopback(&self.remote.url);
        let again = if is_absent {
            RetryAdvice::No
        } else {
            RetryAdvice::After(None)
        };
        AttemptFailure {
            error: ModelError::Connect {
                origin: origin(&self.remote.url),
                detail,
            },
            again,
        }
    }

    async fn refusal(
        &self,
        status: StatusCode,
        mut response: Response,
        clock: &CallClock<'_>,
    ) -> AttemptFailure {
        let asked = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok());
        let asked =
            asked.and_then(|value| parse_retry_after(value, crate::host::clock::now().timestamp()));
        let mut body = Vec::new();

        while body.len() < MAX_REFUSAL {
            match clock
                .run_with_limits(self.remote.limits.idle, response.chunk())
                .await
            {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Err(stop @ (Stop::Interrupted | Stop::Late)) => {
                    return self.stopped(stop, Duration::ZERO, "").into();
                }
                // The status alone is enough if the body can't be read.
                _ => break,
            }
        }

        body.truncate(MAX_REFUSAL);
        self.explain(status, &String::from_utf8_lossy(&body), asked)
    }

    fn explain(&self, status: StatusCode, body: &str, asked: Option<Duration>) -> AttemptFailure {
        let value = serde_json::from_str::<Value>(body).unwrap_or_default();
        // Used-up credit is a 429 at OpenAI and a 400 at Anthropic. Retrying helps with neither.
        let is_out_of_credit = ["insufficient_quota", "credit balance"]
            .iter()
            .any(|phrase| body.contains(phrase));
        // A proxy, or a server at a wrong address, answers with a page.
        let page = body.trim_start().starts_with('<');
        let message = provider_message(&value).unwrap_or_else(|| {
            if page {
                ModelError::WEB_PAGE.into()
            } else {
                body.to_owned()
            }
        });

        let detail = self.remote.secrets.scrub(&message);
        let (origin, address) = (origin(&self.remote.url), self.remote.address());
        let status = status.as_u16();
        match status {
            401 | 403 => ModelError::Unauthorized { origin, detail }.into(),
            404 => ModelError::NotFound {
                id: self.remote.id.clone(),
                address,
                detail,
            }
            .into(),
            402 => ModelError::Credit { detail }.into(),
            // Gemini's way to refuse a key.
            400 if body.contains("API_KEY_INVALID") || message.starts_with("API key not valid") => {
                ModelError::Unauthorized { origin, detail }.into()
            }
            400 | 429 if is_out_of_credit => ModelError::Credit { detail }.into(),
            429 => AttemptFailure {
                error: ModelError::Quota { detail },
                again: RetryAdvice::After(asked),
            },
            408 | 500.. => AttemptFailure {
                error: ModelError::Server { status, detail },
                again: RetryAdvice::After(asked),
            },
            _ => AttemptFailure {
                error: ModelError::Refused { status, detail },
                again: RetryAdvice::Adapted,
            },
        }
    }

    fn stopped(&self, stop: Stop, limit: Duration, partial: &str) -> ModelError {
        let partial = partial.to_owned();
        match stop {
            Stop::Interrupted => ModelError::Interrupted { partial },
            Stop::Silent => ModelError::Idle { limit, partial },
            Stop::Late => ModelError::Timeout {
                limit: self.remote.limits.total,
                partial,
            },
        }
    }
}

/// Even if a server asks for more.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// As a fraction of the delay that a server asked for.
const MAX_RETRY_JITTER: f64 = 0.25;

/// What the server asks for, slightly extended, else exponential backoff. `jitter`, from 0 to 1,
/// spreads clients that were rejected at the same time.
fn retry_pause(first: Duration, repetition: u32, asked: Option<Duration>, jitter: f64) -> Duration {
    let pause = match asked {
        Some(asked) => asked
            .min(MAX_RETRY_PAUSE)
            .mul_f64(1.0 + MAX_RETRY_JITTER * jitter),
        None => first
            // A shift by 32 or more would overflow.
            .saturating_mul(1 << repetition.min(16))
            .min(MAX_RETRY_PAUSE)
            .mul_f64(0.5 + 0.5 * jitter),
    };
    pause.min(MAX_RETRY_PAUSE)
}

/// Seconds or a date.
fn parse_retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_RETRY_PAUSE.as_secs_f64())).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

const CLOCK_TICK: Duration = Duration::from_millis(25);

struct CallClock<'a> {
    deadline: Instant,
    stopped: &'a dyn Fn() -> bool,
    /// Called every `CLOCK_TICK` while waiting.
    beat: &'a dyn Fn(),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Interrupted,
    /// Beyond the limit for silence.
    Silent,
    /// Beyond the limit for the whole call.
    Late,
}

impl<'a> CallClock<'a> {
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

    /// Waits at most for `silence` and until the deadline.
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

    /// Returns early only if the deadline passes or the user cancels.
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pause_doubles_up_to_a_minute() {
        assert_eq!(
            [0, 1, 2, 9, 99].map(|n| retry_pause(SECOND, n, None, 1.0).as_secs()),
            [1, 2, 4, 60, 60]
        );
    }

    #[test]
    fn chance_spreads_the_second_half_of_a_pause() {
        assert_eq!(
            [0.0, 0.5, 1.0].map(|jitter| retry_pause(SECOND, 2, None, jitter).as_millis()),
            [2000, 3000, 4000]
        );
    }

    #[test]
    fn what_a_server_asks_for_is_never_cut_short() {
        assert_eq!(
            [0.0, 0.5, 1.0]
                .map(|jitter| retry_pause(SECOND, 0, Some(4 * SECOND), jitter).as_millis()),
            [4000, 4500, 5000]
        );
        assert_eq!(
            retry_pause(SECOND, 0, Some(Duration::ZERO), 1.0),
            Duration::ZERO
        );
    }

    #[test]
    fn a_server_may_ask_for_a_minute_at_most() {
        assert_eq!(
            [3, 86_400]
                .map(|seconds| retry_pause(SECOND, 0, Some(seconds * SECOND), 0.0).as_secs()),
            [3, 60]
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "2026-01-24T10:00:00Z".parse().unwrap();
        let check = |value: &str, expected: Option<u64>| {
            assert_eq!(
                parse_retry_after(value, now).map(|pause| pause.as_secs()),
                expected,
                "{value}"
            )
        };
        check("7", Some(7));
        check("99999999999999999999", Some(60));
        check("-5", Some(0));
        check("Sat, 24 Jan 2026 10:00:30 GMT", Some(30));
        check("Sat, 24 Jan 2026 09:00:00 GMT", Some(0));
        check("soon", None);
    }
}
