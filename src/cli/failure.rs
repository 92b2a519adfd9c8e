//! Classifies errors: kind and hint. Programs rely on the kinds, which `docs/cli.md` lists; the
//! kind determines the exit code.

use std::error::Error;
use std::path::Path;

use clap::error::ErrorKind;
use serde_json::{Value, json};

use super::exit::{self, ExitStatus};
use crate::change::id::IdError;
use crate::change::store::ChangeError;
use crate::config::layer::ConfigError;
use crate::git::keep::store_access::{ReadExtent, UnreadableStore, ensure_readable};
use crate::git::land::branch::Obstacle;
use crate::git::object::absent::MissingObject;
use crate::git::open::OpenError;
use crate::git::refs::{DamagedTable, MoveError, RefsLocked};
use crate::git::remote::error::{RemoteError, RemoteTrouble};
use crate::git::repository::Repository;
use crate::git::sign::SignError;
use crate::git::snapshot::limits::OverBudget;
use crate::host::lock::{LockError, stopped_process};
use crate::model::ModelError;
use crate::model::prompt::UnknownAgent;
use crate::project::{NoSession, REVIEWED};
use crate::query::paths::EmptyPath;
use crate::session::name::{NameError, NotOwn};
use crate::session::store::StoreError;
use crate::text::hint::HintedError;
use crate::ui::flag_user::Unapproved;
use crate::workflow::bisect::Unfit;
use crate::workflow::context::message::Unanswered;
use crate::workflow::execute::prepare::SetupFailed;
use crate::workflow::execute::{ForeignPlan, NoPlan};
use crate::workflow::land::error::{CommitRefused, LandError};
use crate::workflow::model::choose::NoModel;
use crate::workflow::plan::NotAPlan;
use crate::workflow::push::error::PushError;
use crate::workflow::user::NobodyToAsk;

/// An invalid word on the command line.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct InvalidArgument {
    pub message: String,
    pub hint: Option<String>,
}

impl InvalidArgument {
    pub(super) fn error(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        let (message, hint) = (message.into(), Some(hint.into()));
        InvalidArgument { message, hint }.into()
    }
}

/// The program that `record` should run.
#[derive(Debug, thiserror::Error)]
#[error("the program `{0}` was not found, so nothing ran and no turn is recorded")]
pub(super) struct ProgramNotFound(pub String);

/// A command that failed after producing output. With `--json`, output and error become one value.
#[derive(Debug, thiserror::Error)]
#[error("{error:#}")]
pub(super) struct Unfinished {
    /// The output, as an object.
    pub partial: Value,
    pub error: anyhow::Error,
}

/// How to answer a question of the model.
pub(super) const ANSWER: &str = "`teddy resume -m '<answer>'` answers and continues";

/// Hint if the program of `record` is missing.
const PROGRAMS: &str = "programs are searched in `PATH`; `./<file>` names one in this directory";

/// Hint if another process holds the lock.
const WAIT: &str = "try again once it has ended; `TEDDY_LOCK_TIMEOUT=<seconds>` waits longer";

/// Kind of an error, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(clap::ValueEnum))]
pub(super) enum FailureKind {
    Failed,
    Usage,
    Interrupted,
    Busy,
    Moved,
    NobodyToAsk,
    Unapproved,
    Unanswered,
    NoRepository,
    UnfitRepository,
    ForeignRepository,
    DamagedRepository,
    Configuration,
    NoSession,
    SessionNotFound,
    SessionTaken,
    TurnNotFound,
    TurnInProgress,
    NoRemote,
    RemoteUnreachable,
    RemoteDenied,
    RemoteUnsound,
    NothingToLand,
    CannotLand,
    CommitRefused,
    CannotSign,
    NotSent,
    Findings,
    NoPlan,
    NotAPlan,
    ForeignPlan,
    ProgramNotFound,
    AgentNotFound,
    SnapshotTooLarge,
    SetupFailed,
    NoModel,
    ModelSettings,
    NoKey,
    KeyRefused,
    ModelNotFound,
    RateLimited,
    NoCredit,
    RequestRefused,
    ModelUnavailable,
    ModelTimeout,
    AnswerUnusable,
    ModelCommand,
    CostLimit,
    ChangeNotFound,
    MissingDescription,
    Rejected,
    ChangeNotReady,
    ChangeNotComplete,
    Invalid,
    OpenTasks,
}

impl FailureKind {
    pub(super) fn code(self) -> ExitStatus {
        match self {
            FailureKind::Usage => exit::USAGE,
            FailureKind::Interrupted => exit::INTERRUPTED,
            FailureKind::Busy => exit::BUSY,
            FailureKind::Unanswered => exit::WAITS,
            FailureKind::NotAPlan => exit::REJECTED,
            FailureKind::ProgramNotFound => exit::NO_PROGRAM,
            _ => exit::FAILED,
        }
    }
}

/// Classification of an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub kind: FailureKind,
    pub hint: Option<String>,
}

impl Diagnosis {
    pub(super) fn of(kind: FailureKind, hint: impl Into<Option<String>>) -> Diagnosis {
        let hint = hint.into();
        Diagnosis { kind, hint }
    }

    /// Returns the classification of an invalid command line.
    pub(super) fn usage(hint: Option<String>) -> Diagnosis {
        Diagnosis::of(FailureKind::Usage, hint)
    }

    /// Returns the classification of an interrupt by the user.
    pub(super) fn interrupted() -> Diagnosis {
        Diagnosis::of(FailureKind::Interrupted, None)
    }

    /// Returns the object `error` for programs, merged into the output.
    pub(super) fn to_json(&self, message: &str, partial: Value) -> Value {
        let mut value = match partial {
            Value::Object(_) => partial,
            _ => json!({}),
        };
        value["error"] = json!({
            "kind": self.kind,
            "message": message,
            "hint": self.hint,
            "exit_code": self.kind.code().0,
        });
        value
    }
}

/// Returns the model's question if the error is about one.
pub(super) fn question(error: &anyhow::Error) -> Option<&str> {
    error
        .chain()
        .find_map(|cause| cause.downcast_ref())
        .map(|Unanswered(question)| question.as_str())
}

/// Each knows the errors of one subject.
const CLASSIFIERS: [fn(&(dyn Error + 'static)) -> Option<Diagnosis>; 8] = [
    usage,
    waits,
    session,
    landing,
    classify_remote,
    repository,
    classify_model,
    change,
];

/// Classifies an error. An unknown one is a plain failure.
pub(super) fn classify(error: &anyhow::Error) -> Diagnosis {
    let classify_cause = |cause| CLASSIFIERS.iter().find_map(|classify| classify(cause));
    error
        .chain()
        .find_map(classify_cause)
        .unwrap_or_else(|| Diagnosis::of(FailureKind::Failed, None))
}

fn usage(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    let hint = if let Some(InvalidArgument { hint, .. }) = cause.downcast_ref() {
        hint.clone()
    } else if let Some(NameError::Turn(turn)) = cause.downcast_ref() {
        Some(format!(
            "`teddy branch {turn} <name>` starts a session at that turn"
        ))
    } else if let Some(NotOwn(session)) = cause.downcast_ref() {
        Some(format!(
            "`teddy branch {session}:@ <name>` continues from it, if its files were pushed"
        ))
    } else if cause.is::<EmptyPath>() {
        Some("`.` names the directory that you are in".to_owned())
    } else if let Some(error) = cause
        .downcast_ref()
        .filter(|it| ConfigError::is_of_call(it))
    {
        ConfigError::suggestion(error)
    } else if cause.is::<NameError>() || cause.is::<IdError>() {
        None
    } else {
        return None;
    };
    Some(Diagnosis::usage(hint))
}

/// Classifies errors about waiting: for another process, or for the user.
fn waits(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    let (kind, hint) = match cause.downcast_ref() {
        Some(LockError::Busy { holder }) => {
            let hint = match stopped_process(holder) {
                Some(process) => format!(
                    "it is stopped; `fg` in its terminal or `kill -CONT {process}` continues it"
                ),
                None if holder.contains(REVIEWED) => {
                    format!("decide in the review there, or {WAIT}")
                }
                None => WAIT.to_owned(),
            };
            (FailureKind::Busy, hint)
        }
        Some(LockError::Interrupted) => return Some(Diagnosis::interrupted()),
        _ if cause.is::<Unanswered>() => (FailureKind::Unanswered, ANSWER.to_owned()),
        _ if cause.is::<Unapproved>() => (FailureKind::Unapproved, "`-y` approves it".to_owned()),
        _ => match (cause.downcast_ref(), cause.downcast_ref()) {
            (Some(NobodyToAsk { hint, .. }), _) => (FailureKind::NobodyToAsk, hint.clone()),
            (_, Some(error @ MoveError::Moved { .. })) => (FailureKind::Moved, error.hint()?),
            _ => return None,
        },
    };
    Some(Diagnosis::of(kind, hint))
}

/// Classifies errors about missing or existing sessions and turns, and about what runs in them.
fn session(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    let (kind, hint) = if let Some(NoSession { can_start }) = cause.downcast_ref() {
        let hint = match can_start {
            true => {
                "`teddy start '<what you want>'` or `teddy new <name>` starts one, `teddy sessions` lists them, `-s <name>` names one"
            }
            false => "`teddy sessions` lists them, `-s <name>` names one",
        };
        (FailureKind::NoSession, hint.to_owned())
    } else if cause.is::<NoPlan>() {
        let hint =
            "`teddy plan '<message>'` makes one; `teddy execute <file>` takes one from elsewhere";
        (FailureKind::NoPlan, hint.to_owned())
    } else if let Some(ForeignPlan(session)) = cause.downcast_ref() {
        let hint = format!(
            "look at it with `git show {}:plan.md`; `teddy switch --adopt {session}` accepts it",
            session.draft_reference()
        );
        (FailureKind::ForeignPlan, hint)
    } else if cause.is::<NotAPlan>() {
        let hint = "`--from` takes a file with a model's answer; `teddy execute` runs the plan that is waiting";
        (FailureKind::NotAPlan, hint.to_owned())
    } else if cause.is::<ProgramNotFound>() {
        (FailureKind::ProgramNotFound, PROGRAMS.to_owned())
    } else {
        store_failure(cause.downcast_ref()?)
    };
    Some(Diagnosis::of(kind, hint))
}

fn store_failure(error: &StoreError) -> (FailureKind, String) {
    match error {
        StoreError::NoSession {
            fetched: Some(fetched),
            ..
        } => (
            FailureKind::SessionNotFound,
            format!(
                "it was fetched as `{fetched}`, which can be shown; `teddy switch {fetched}` makes it yours"
            ),
        ),
        StoreError::NoSession { name, near, .. } => {
            let near = near.as_ref().map(|name| format!("did you mean `{name}`? "));
            let hint = match name.remote() {
                None => "`teddy sessions` lists the sessions",
                Some(_) => "`teddy sessions -r` lists those of remotes, as they were last fetched",
            };
            let hint = near.unwrap_or_default() + hint;
            (FailureKind::SessionNotFound, hint)
        }
        StoreError::Taken(name) => (
            FailureKind::SessionTaken,
            format!("`teddy switch {name}` continues it; or choose another name"),
        ),
        StoreError::NoTurn {
            turn,
            has_session: true,
            ..
        } => (
            FailureKind::TurnNotFound,
            format!("`{turn}:@` is the newest turn of session `{turn}`"),
        ),
        StoreError::NoTurn { .. } => (
            FailureKind::TurnNotFound,
            "`teddy log` lists the turns".to_owned(),
        ),
        StoreError::NoDraft(_) => (
            FailureKind::TurnNotFound,
            "`teddy plan -m <message>` begins one".to_owned(),
        ),
        StoreError::InProgress { .. } => (
            FailureKind::TurnInProgress,
            "`teddy show draft` and `teddy diff draft` show it; `teddy execute` runs it".to_owned(),
        ),
    }
}

/// Classifies an error of one type, which has its own hint.
fn by_hint<E: Error + 'static, H: Into<Option<String>>>(
    cause: &(dyn Error + 'static),
    kind: FailureKind,
    hint: fn(&E) -> H,
) -> Option<Diagnosis> {
    let error = cause.downcast_ref()?;
    Some(Diagnosis::of(kind, hint(error)))
}

fn landing(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    if let Some(obstacle @ Obstacle::BadName(_)) = cause.downcast_ref() {
        return Some(Diagnosis::of(FailureKind::Usage, obstacle.hint()));
    }

    let by_type = by_hint(cause, FailureKind::CommitRefused, CommitRefused::hint)
        .or_else(|| by_hint(cause, FailureKind::CannotLand, Obstacle::hint))
        .or_else(|| by_hint(cause, FailureKind::CannotSign, SignError::hint));
    if by_type.is_some() {
        return by_type;
    }

    let error: &LandError = cause.downcast_ref()?;
    let kind = match error {
        LandError::Nothing { .. }
        | LandError::InHead(_)
        | LandError::Ignored
        | LandError::Reverted(_)
        | LandError::Repositories
        | LandError::Restore(_)
        | LandError::Unchanged(_) => FailureKind::NothingToLand,
        LandError::NotInEffect(_) | LandError::NotInFiles(_) | LandError::Marked(_) => {
            FailureKind::CannotLand
        }
        LandError::Range(_) => FailureKind::Usage,
        LandError::Session(_) => FailureKind::TurnNotFound,
        LandError::EmptyMessage => FailureKind::Failed,
        LandError::Trailer(_) => FailureKind::Configuration,
    };
    Some(Diagnosis::of(kind, error.hint()))
}

fn repository(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    if let Some(error) = cause.downcast_ref::<OpenError>() {
        let kind = match error {
            OpenError::None(_) => FailureKind::NoRepository,
            OpenError::Foreign(_) => FailureKind::ForeignRepository,
            OpenError::Lost(..) | OpenError::Damaged(..) | OpenError::Irregular(_) => {
                FailureKind::DamagedRepository
            }
            _ => FailureKind::UnfitRepository,
        };
        return Some(Diagnosis::of(kind, error.hint()));
    }

    let hint = |error: &HintedError| error.hint.clone();
    let unfit_hint = |error: &Unfit| error.hint().to_owned();
    by_hint(cause, FailureKind::SetupFailed, SetupFailed::hint)
        .or_else(|| by_hint(cause, FailureKind::Failed, unfit_hint))
        .or_else(|| by_hint(cause, FailureKind::DamagedRepository, DamagedTable::hint))
        .or_else(|| by_hint(cause, FailureKind::Failed, RefsLocked::hint))
        .or_else(|| by_hint(cause, FailureKind::Failed, hint))
        .or_else(|| by_hint(cause, FailureKind::Configuration, ConfigError::hint))
        .or_else(|| by_hint(cause, FailureKind::SnapshotTooLarge, OverBudget::hint))
        .or_else(|| by_hint(cause, FailureKind::AgentNotFound, agent_hint))
        .or_else(|| by_hint(cause, FailureKind::Failed, MissingObject::hint))
        .or_else(|| by_hint(cause, FailureKind::Failed, UnreadableStore::hint))
}

fn agent_hint(error: &UnknownAgent) -> String {
    match error {
        UnknownAgent::Untrusted { .. } => "`teddy trust` shows it and remembers it".to_owned(),
        UnknownAgent::Missing {
            near: Some(near), ..
        } => format!("did you mean `{near}`?"),
        UnknownAgent::Missing { near: None, .. } => {
            "`teddy get-prompt` lists the agents".to_owned()
        }
    }
}

fn change(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    let error: &ChangeError = cause.downcast_ref()?;
    let kind = match error {
        ChangeError::ChangeNotFound(_) => FailureKind::ChangeNotFound,
        ChangeError::MissingDescription(_) => FailureKind::MissingDescription,
        ChangeError::Rejected(_) => FailureKind::Rejected,
        ChangeError::ChangeNotReady { .. } => FailureKind::ChangeNotReady,
        ChangeError::ChangeNotComplete { .. } => FailureKind::ChangeNotComplete,
        ChangeError::Invalid { .. } => FailureKind::Invalid,
        ChangeError::OpenTasks { .. } => FailureKind::OpenTasks,
    };
    Some(Diagnosis::of(kind, error.hint()))
}

/// Returns message and hint of a command line that clap rejects.
pub(super) fn misread(error: &clap::Error, help: &str) -> InvalidArgument {
    if matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return InvalidArgument {
            message: "a command is missing".to_owned(),
            hint: Some("`teddy --help` lists the commands".to_owned()),
        };
    }

    let text = error.render().to_string();
    let mut parts = text.trim().split("\n\n").map(|part| {
        let tokens: Vec<&str> = part.split_whitespace().collect();
        tokens.join(" ")
    });
    let first = parts.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    let mut hints: Vec<String> = parts
        .filter(|part| !part.starts_with("For more information"))
        .map(|part| part.trim_start_matches("tip: ").to_owned())
        .collect();
    hints.push(help.to_owned());
    InvalidArgument {
        message,
        hint: Some(hints.join("; ")),
    }
}

fn classify_model(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    let hint = |missing: &NoModel| missing.hint().to_owned();
    by_hint(cause, FailureKind::NoModel, hint).or_else(|| {
        let error: &ModelError = cause.downcast_ref()?;
        Some(Diagnosis::of(model_failure(error), error.remedy()))
    })
}

fn model_failure(error: &ModelError) -> FailureKind {
    match error {
        ModelError::Settings(_) | ModelError::Unknown(_) | ModelError::NoSuchModel { .. } => {
            FailureKind::ModelSettings
        }
        ModelError::NoKey { .. } | ModelError::KeyCommand { .. } => FailureKind::NoKey,
        ModelError::Unauthorized { .. } => FailureKind::KeyRefused,
        ModelError::NotFound { .. } => FailureKind::ModelNotFound,
        ModelError::Quota { .. } => FailureKind::RateLimited,
        ModelError::Credit { .. } => FailureKind::NoCredit,
        ModelError::Refused { .. } => FailureKind::RequestRefused,
        ModelError::Server { .. } | ModelError::Connect { .. } | ModelError::Redirect { .. } => {
            FailureKind::ModelUnavailable
        }
        ModelError::Idle { .. } | ModelError::Timeout { .. } => FailureKind::ModelTimeout,
        ModelError::NotJson { .. }
        | ModelError::Broken { .. }
        | ModelError::Provider { .. }
        | ModelError::Ended { .. }
        | ModelError::Declined { .. }
        | ModelError::CalledTool { .. }
        | ModelError::TooLarge { .. }
        | ModelError::Empty { .. }
        | ModelError::Truncated { .. } => FailureKind::AnswerUnusable,
        ModelError::CommandMissing { .. }
        | ModelError::CommandFailed { .. }
        | ModelError::CommandSilent { .. }
        | ModelError::Agent { .. }
        | ModelError::ReplayEnded { .. } => FailureKind::ModelCommand,
        ModelError::CostLimit { .. } | ModelError::BudgetExceeded { .. } => FailureKind::CostLimit,
        ModelError::NoTerminal { .. } => FailureKind::NobodyToAsk,
        ModelError::Io { .. } | ModelError::NotTaken | ModelError::Interrupted { .. } => {
            FailureKind::Failed
        }
    }
}

fn classify_remote(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    if let Some(error) = cause.downcast_ref::<PushError>() {
        let kind = match error {
            PushError::Findings { .. } => FailureKind::Findings,
            _ => FailureKind::NotSent,
        };
        return Some(Diagnosis::of(kind, error.hint()));
    }

    let error: &RemoteError = cause.downcast_ref()?;
    let kind = match error.trouble {
        RemoteTrouble::NotConfigured | RemoteTrouble::NotFound => FailureKind::NoRemote,
        RemoteTrouble::Denied => FailureKind::RemoteDenied,
        RemoteTrouble::Unreachable | RemoteTrouble::Dropped => FailureKind::RemoteUnreachable,
        RemoteTrouble::RefRefused
        | RemoteTrouble::Rejected
        | RemoteTrouble::Shallow
        | RemoteTrouble::OtherHash
        | RemoteTrouble::HookDeclined
        | RemoteTrouble::NotFastForward => FailureKind::NotSent,
        RemoteTrouble::Unsound => FailureKind::RemoteUnsound,
        RemoteTrouble::NoSuchRef => FailureKind::SessionNotFound,
        RemoteTrouble::NotWritten | RemoteTrouble::Other => FailureKind::Failed,
    };
    Some(Diagnosis::of(kind, error.hint()))
}

/// Returns why an object is missing if a file that might have it cannot be read.
pub(in crate::cli) fn unreadable_rather_than_missing(
    error: anyhow::Error,
    dir: Option<&Path>,
) -> anyhow::Error {
    if !error.chain().any(|cause| cause.is::<MissingObject>()) {
        return error;
    }
    let repository = dir.and_then(|dir| Repository::discover_record(dir, None).ok());
    match repository.map(|repository| ensure_readable(&repository, ReadExtent::Start)) {
        Some(Err(unreadable)) => unreadable,
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn promise_c3_the_document_lists_the_kinds_that_the_code_has() {
        let document = include_str!("../../docs/cli.md");
        let table = document
            .split_once("| Kind | Exit code | Meaning |\n|---|---|---|\n")
            .unwrap()
            .1;
        let listed: Vec<&str> = table
            .lines()
            .map_while(|line| line.strip_prefix("| `")?.split_once('`'))
            .map(|(name, _)| name)
            .collect();
        let kinds = FailureKind::value_variants().iter();
        let kinds: Vec<String> = kinds.map(|kind| format!("{kind:?}")).collect();
        assert_eq!(listed, kinds);
    }
}
