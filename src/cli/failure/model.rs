//! Classifies errors of models.

use std::error::Error;

use super::Diagnosis;
use crate::cli::kind::FailureKind;
use crate::model::ModelError;
use crate::workflow::model::choose::NoModel;

pub(super) fn classify_model(cause: &(dyn Error + 'static)) -> Option<Diagnosis> {
    if let Some(missing) = cause.downcast_ref::<NoModel>() {
        return Some(Diagnosis::of(
            FailureKind::NoModel,
            Some(missing.hint().to_owned()),
        ));
    }

    let error: &ModelError = cause.downcast_ref()?;
    let kind = match error {
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
        ModelError::Io { .. } | ModelError::Interrupted { .. } => FailureKind::Failed,
    };
    Some(Diagnosis::of(kind, Some(error.remedy())))
}
