//! Checks the configured models: key, program and server. Sends no prompt, runs no program and
//! fetches no key.

use std::sync::mpsc;
use std::time::Duration;

use super::{HealthCheck, Patient};
use crate::config::settings::{ModelKind, ModelSettings};
use crate::host::process;
use crate::model::ModelError;
use crate::model::acting::open::program_of;
use crate::model::model_env::ModelEnv;
use crate::model::remote::{KeySource, ModelSource, check_reachable, model_source};
use crate::session::name::SessionName;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::workflow::setup;

const LIMIT: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_millis(500);
const MOST_OTHERS: usize = 50;

/// `None` if the model has no server.
pub(super) type ServerAnswer = Option<mpsc::Receiver<Result<(), String>>>;

pub(super) fn begin(patient: &Patient) -> ServerAnswer {
    let name = patient.settings.model.as_deref()?;
    let config = ModelSettings::resolve(name, &patient.settings).ok()?;
    let is_remote = config.kind.is_remote();
    if !is_remote || !setup::is_looking() {
        return None;
    }

    let origin = model_source(name, &config, &ModelEnv::default())
        .ok()?
        .origin;
    let (sender, receiver) = mpsc::channel();
    // Detached: a DNS lookup can block longer than our timeout.
    std::thread::spawn(move || sender.send(check_reachable(&origin, LIMIT)));
    Some(receiver)
}

pub(super) fn run_checks(patient: &Patient, server_answer: &ServerAnswer) -> Vec<HealthCheck> {
    let Some(model) = patient.settings.model.as_deref() else {
        let check = HealthCheck::note("model", "no model is configured: plans come from elsewhere");
        let mut checks = vec![check.remedy("teddy setup")];
        checks.extend(others(patient, None));
        return checks;
    };

    let mut checks = vec![in_use(patient, model, server_answer)];
    checks.extend(others(patient, Some(model)));
    checks
}

fn in_use(patient: &Patient, name: &str, server_answer: &ServerAnswer) -> HealthCheck {
    let origin = match find(patient, name) {
        Ok(origin) => origin,
        Err(lack) => {
            return HealthCheck::problem("model", lack.reason).remedy(lack.remedy);
        }
    };
    let limit = LIMIT + GRACE;
    let answer = server_answer
        .as_ref()
        .map(|receiver| match receiver.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
        });

    match answer {
        Some(Err(why)) => {
            let reason = format!(
                "`{}`: {origin}, which cannot be reached: {why}",
                sanitize_line(name)
            );
            HealthCheck::warning("model", reason)
                .remedy("teddy setup --list  # what else is there on this machine")
        }
        Some(Ok(())) => HealthCheck::ok(
            "model",
            format!("`{}`: {origin}, which answers", sanitize_line(name)),
        ),
        None => HealthCheck::ok("model", format!("`{}`: {origin}", sanitize_line(name))),
    }
}

/// Only problems are reported.
fn others(patient: &Patient, in_use: Option<&str>) -> Vec<HealthCheck> {
    let names = patient.settings.models.keys();
    let others = names.filter(|name| Some(name.as_str()) != in_use);
    others
        .take(MOST_OTHERS)
        .filter_map(|name| find(patient, name).err())
        .map(|lack| HealthCheck::note("models", lack.reason).remedy(lack.remedy))
        .collect()
}

struct Lack {
    reason: String,
    remedy: String,
}

impl From<ModelError> for Lack {
    fn from(error: ModelError) -> Lack {
        Lack {
            reason: sanitize_line(&error.to_string()).into_owned(),
            remedy: error.remedy(),
        }
    }
}

fn find(patient: &Patient, name: &str) -> Result<String, Lack> {
    let config = ModelSettings::resolve(name, &patient.settings)?;
    let environment = ModelEnv::default();
    match config.kind {
        kind if kind.is_remote() => remote(name, model_source(name, &config, &environment)?),
        ModelKind::Replay => replay(patient, name, &config),
        ModelKind::Manual => Ok("you carry the input to a chat window".to_owned()),
        kind if kind.is_acting() => program(name, &program_of(name, &config, &environment)?),
        _ => program(name, config.run.first().map_or("", String::as_str)),
    }
}

fn remote(name: &str, source: ModelSource) -> Result<String, Lack> {
    match &source.key {
        KeySource::Variable {
            name: variable,
            is_set: false,
        } => Err(Lack {
            reason: format!(
                "model `{}` has no key: {} is not set, empty or a placeholder",
                sanitize_line(name),
                sanitize_line(variable)
            ),
            remedy: format!("export {}=...", shell_word(variable)),
        }),
        KeySource::Program(key_program) => {
            program(name, key_program)?;
            Ok(source.origin)
        }
        _ => Ok(source.origin),
    }
}

fn program(name: &str, program: &str) -> Result<String, Lack> {
    if program.is_empty() {
        return Err(ModelError::Settings(format!("model `{name}` has no program in `run`")).into());
    }

    match process::find(program) {
        Some(path) => Ok(sanitize_line(&format!("`{}`", path.display())).into_owned()),
        None => Err(Lack {
            reason: sanitize_line(&format!(
                "model `{name}` needs the program `{program}`, which does not exist"
            ))
            .into_owned(),
            remedy: format!(
                "command -v {}  # finds nothing; install it, or `teddy setup` chooses another model",
                shell_word(program)
            ),
        }),
    }
}

fn replay(patient: &Patient, name: &str, config: &ModelSettings) -> Result<String, Lack> {
    let path = config.path.clone().unwrap_or_default();
    let project = patient.project.as_ref().ok();
    let at_root = project.map(|project| project.repository.workdir().join(&path));
    let is_session = || {
        let session = SessionName::from_ref(path.to_str()?).ok()?;
        project?.store().tip_id(&session).ok()
    };

    let is_file = path.exists() || at_root.is_some_and(|path| path.exists());
    if is_file || is_session().is_some() {
        return Ok("recorded answers".to_owned());
    }
    Err(Lack {
        reason: sanitize_line(&format!(
            "model `{name}` replays `{}`, which does not exist",
            path.display()
        ))
        .into_owned(),
        remedy: "teddy setup".to_owned(),
    })
}
