//! What a person is told about an error besides its words, and the exit code that it means.

use std::error::Error;

use super::exit::{self, Code};
use crate::change::error::ChangeError;
use crate::change::id::IdError;
use crate::config::layer::ConfigError;
use crate::git::repository::OpenError;
use crate::host::lock::LockError;
use crate::model::ModelError;
use crate::session::name::NameError;
use crate::session::store::StoreError;
use crate::workflow::execute::prepare::SetupFailed;
use crate::workflow::execute::{ForeignPlan, NoPlan};
use crate::workflow::models::NoModel;
use crate::workflow::plan::{Left, Unanswered};
use crate::workflow::project::NoSession;

/// A setting for one call that is none.
#[derive(Debug, thiserror::Error)]
#[error("`-c {0}`: write `key=value`")]
pub(super) struct Malformed(pub String);

/// How a question of the model is answered.
pub(super) const ANSWER: &str = "`teddy resume -m '<answer>'` answers and goes on";

/// A hint, and an exit code.
type Judged = (Option<String>, Code);

/// Returns the question of the model that an error is about, if it is.
pub(super) fn question(error: &anyhow::Error) -> Option<&str> {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref())
        .map(|Unanswered(question)| question.as_str())
}

/// Returns what the user can do about an error, and the exit code.
pub(super) fn judge(error: &anyhow::Error) -> Judged {
    let judged = |cause| {
        usage(cause)
            .or_else(|| known(cause))
            .or_else(|| missing(cause))
    };
    error
        .chain()
        .find_map(judged)
        .unwrap_or((None, exit::FAILED))
}

/// Judges what is wrong with the command line.
fn usage(cause: &(dyn Error + 'static)) -> Option<Judged> {
    if let Some(NameError::Turn(turn)) = cause.downcast_ref() {
        return Some((
            Some(format!(
                "`teddy branch {turn} <name>` starts a session at that turn"
            )),
            exit::USAGE,
        ));
    }
    let is_usage = cause.is::<NameError>()
        || cause.is::<IdError>()
        || cause.is::<Malformed>()
        || cause.downcast_ref().is_some_and(ConfigError::is_of_call);
    is_usage.then_some((None, exit::USAGE))
}

/// Judges what knows best itself what helps.
fn known(cause: &(dyn Error + 'static)) -> Option<Judged> {
    if let Some(LockError::Busy { .. }) = cause.downcast_ref() {
        return Some((None, exit::BUSY));
    }
    if cause.is::<Left>() {
        return Some((None, exit::FAILED));
    }
    if cause.is::<Unanswered>() {
        return Some((Some(ANSWER.to_owned()), exit::WAITS));
    }
    let hint = None
        .or_else(|| cause.downcast_ref().map(OpenError::hint))
        .or_else(|| cause.downcast_ref().map(ModelError::remedy))
        .or_else(|| cause.downcast_ref().map(ChangeError::hint))
        .or_else(|| cause.downcast_ref().and_then(SetupFailed::hint))
        .or_else(|| {
            cause
                .downcast_ref()
                .map(|missing: &NoModel| missing.hint().to_owned())
        })?;
    Some((Some(hint), exit::FAILED))
}

/// Judges what is not there, or is there already.
fn missing(cause: &(dyn Error + 'static)) -> Option<Judged> {
    let hint = if cause.is::<NoSession>() {
        "`teddy new <name>` starts one, `teddy sessions` lists them, `-s <name>` names one"
            .to_owned()
    } else if cause.is::<NoPlan>() {
        "`teddy plan -m <message>` makes one; `teddy execute <file>` takes one from elsewhere"
            .to_owned()
    } else if let Some(ForeignPlan(session)) = cause.downcast_ref() {
        format!(
            "look at it with `git show {}:plan.md`; `teddy adopt {session}` accepts it",
            session.draft_reference()
        )
    } else {
        match cause.downcast_ref()? {
            StoreError::NoSession(_) => "`teddy sessions` lists the sessions".to_owned(),
            StoreError::Taken(name) => {
                format!("`teddy switch {name}` goes on with it; or choose another name")
            }
            StoreError::NoTurn { .. } => "`teddy log` lists the turns".to_owned(),
        }
    };
    Some((Some(hint), exit::FAILED))
}
