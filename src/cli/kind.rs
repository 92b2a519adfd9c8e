//! Error kinds for programs, listed in `docs/cli.md`.

/// Generates the enum and its names. The document explains each kind.
macro_rules! kinds {
    ($($name:ident,)*) => {
        /// Kind of an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum FailureKind {
            $($name,)*
        }

        impl FailureKind {
            #[cfg(test)]
            const ALL: &[FailureKind] = &[$(FailureKind::$name,)*];

            /// Returns the name. Programs rely on it.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(FailureKind::$name => stringify!($name),)*
                }
            }
        }
    };
}

kinds! {
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

#[cfg(test)]
mod tests {
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
        let kinds: Vec<&str> = FailureKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(listed, kinds);
    }
}
