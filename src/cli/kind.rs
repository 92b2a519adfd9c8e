//! Error kinds for programs, listed in `docs/cli.md`.

use super::exit::{self, ExitStatus};

/// Kind of an error. Programs rely on the names; the document explains each.
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
