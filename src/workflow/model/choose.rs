//! Chooses and opens the model of a turn.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::change::id::ChangeId;
use crate::config::settings::{ModelKind, ModelSettings, Price};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::interrupt;
use crate::model::acting::agent::ActingModel;
use crate::model::acting::open::open_acting;
use crate::model::model_env::ModelEnv;
use crate::model::open::open;
use crate::model::{Model, ModelError};
use crate::project::Project;
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::workflow::change;

/// For example about retries.
pub type Notes = Rc<RefCell<Vec<String>>>;

pub enum OpenedModel {
    Writes(Box<dyn Model>),
    /// Edits files; the changes are the answer.
    Acts(Box<dyn ActingModel>),
}

impl OpenedModel {
    fn check_installed(&self) -> Result<(), ModelError> {
        match self {
            OpenedModel::Writes(model) => model.check_installed(),
            OpenedModel::Acts(model) => model.agent().check_installed(),
        }
    }
}

pub struct PricedModel {
    /// In the configuration.
    pub name: String,
    pub model: OpenedModel,
    pub price: Option<Price>,
    /// For an answer.
    pub max_tokens: Option<u32>,
    /// Never costs anything.
    pub is_free: bool,
    /// A program can do more than answer.
    pub is_program: bool,
    pub notes: Notes,
}

/// By what the model is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no model is configured")]
pub enum NoModel {
    /// Can also come from a file.
    Plan,
    /// A document of a change, or a review of one.
    Document,
}

impl NoModel {
    pub fn hint(self) -> &'static str {
        match self {
            NoModel::Plan => {
                "`teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere"
            }
            NoModel::Document => {
                "`teddy setup` sets one up, `change.roles` in your configuration names one for each role, and `--model` one for this call"
            }
        }
    }
}

/// The named model, else the session's, else the configured one.
pub fn choose(project: &Project, tip: &Turn, name: Option<&str>) -> anyhow::Result<PricedModel> {
    let usual = project.model_of(&tip.session);
    model(
        project,
        tip,
        name.or(usual.as_deref()).ok_or(NoModel::Plan)?,
    )
}

/// Fails if a model cannot be opened, before a session is started for it.
pub fn check(project: &Project, name: &str) -> anyhow::Result<()> {
    let settings = model_settings(project, name)?;
    // A password manager would ask the user twice.
    if settings.api_key_command.is_empty() {
        let opened = open_model(project, name, settings, 0)?;
        opened.model.check_installed()?;
    }
    Ok(())
}

/// Fails for acting models.
pub fn writer(project: &Project, tip: &Turn, name: Option<&str>) -> anyhow::Result<PricedModel> {
    choose(project, tip, name)?.writing()
}

/// By name in the configuration, or by `kind:id`.
pub fn model(project: &Project, tip: &Turn, name: &str) -> anyhow::Result<PricedModel> {
    let settings = model_settings(project, name)?;
    let answered = if settings.kind == ModelKind::Replay {
        answers(project, tip, name)?
    } else {
        0
    };
    open_model(project, name, settings, answered)
}

/// Outside a session. `answered` is the number of answers so far, at which a replay continues.
pub fn model_after(project: &Project, name: &str, answered: usize) -> anyhow::Result<PricedModel> {
    let settings = model_settings(project, name)?;
    open_model(project, name, settings, answered)?.writing()
}

pub fn model_settings(project: &Project, name: &str) -> anyhow::Result<ModelSettings> {
    Ok(ModelSettings::resolve(name, &project.settings)?)
}

fn open_model(
    project: &Project,
    name: &str,
    mut settings: ModelSettings,
    answered: usize,
) -> anyhow::Result<PricedModel> {
    settings.path = settings
        .path
        .as_deref()
        .map(|path| answers_path(&project.repository, path));
    let notes = Notes::default();
    let environment = build_environment(project, &settings, answered, &notes)?;

    Ok(PricedModel {
        name: name.to_owned(),
        price: settings.price,
        max_tokens: settings.max_tokens,
        is_free: matches!(settings.kind, ModelKind::Replay | ModelKind::Manual),
        is_program: settings.kind == ModelKind::Command,
        model: if settings.kind.is_acting() {
            OpenedModel::Acts(open_acting(name, &settings, &environment)?)
        } else {
            OpenedModel::Writes(open(name, &settings, &environment)?)
        },
        notes,
    })
}

impl PricedModel {
    fn writing(self) -> anyhow::Result<PricedModel> {
        match &self.model {
            OpenedModel::Writes(_) => Ok(self),
            OpenedModel::Acts(_) => Err(error_with_hint(
                format!(
                    "`{}` edits files itself, and this command needs a text answer",
                    self.name
                ),
                "`--model` names another one for this call; `teddy plan` and `teddy resume` take this one",
            )),
        }
    }
}

fn build_environment(
    project: &Project,
    settings: &ModelSettings,
    answered: usize,
    notes: &Notes,
) -> anyhow::Result<ModelEnv> {
    let notes = Rc::clone(notes);
    let mut environment = ModelEnv {
        stopped: Rc::new(interrupt::requested),
        note: Rc::new(move |note| notes.borrow_mut().push(note.to_owned())),
        give: project.manual_io.give.clone(),
        take: project.manual_io.take.clone(),
        adaptations: Some(project.user_dirs.cache.join("models")),
        ..ModelEnv::default()
    };

    if settings.kind == ModelKind::Replay {
        environment.replayed = answered;
        let recorded = recorded(project, settings)?;
        environment.recorded = Rc::new(move |_| recorded.clone());
    }

    Ok(environment)
}

/// Relative to the current directory, else to the project's root.
fn answers_path(repository: &Repository, path: &Path) -> PathBuf {
    let at_root = repository.workdir().join(path);
    if !path.exists() && at_root.exists() {
        at_root
    } else {
        path.to_owned()
    }
}

/// In the session, where a replay continues. The session of a change continues after the answers
/// for its documents.
fn answers(project: &Project, tip: &Turn, name: &str) -> anyhow::Result<usize> {
    if let Some(id) = ChangeId::of_session(&tip.session) {
        return change::answers_in_change(project, &id, name);
    }

    let mut count = 0;
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        if turn.meta.model.is_some() {
            count += outputs(&project.repository, &turn)?.len().max(1);
        }
    }

    Ok(count)
}

/// If the path of a replay is a session name.
fn recorded(project: &Project, settings: &ModelSettings) -> anyhow::Result<Option<Vec<String>>> {
    let Some(path) = settings.path.as_ref().filter(|path| !path.exists()) else {
        return Ok(None);
    };
    let Some(name) = path
        .to_str()
        .and_then(|name| SessionName::from_ref(name).ok())
    else {
        return Ok(None);
    };

    match refs::read(&project.repository, &name.reference())? {
        Some(_) => answers_of(project, &name).map(Some),
        None => Ok(None),
    }
}

/// Oldest first. Each step of a pipeline is one answer.
fn answers_of(project: &Project, session: &SessionName) -> anyhow::Result<Vec<String>> {
    let mut texts = Vec::new();
    for turn in project.store().history(project.store().tip(session)?) {
        let turn = turn?;
        let mut answers = outputs(&project.repository, &turn)?;
        if answers.is_empty() {
            answers.extend(match turn.text(&project.repository, artifact::REPLY)? {
                Some(reply) => Some(reply),
                None => turn.text(&project.repository, artifact::PLAN)?,
            });
        }

        texts.extend(answers.into_iter().rev());
    }

    texts.reverse();
    Ok(texts)
}

fn outputs(repository: &Repository, turn: &Turn) -> anyhow::Result<Vec<String>> {
    if turn.meta.pipeline.is_none() {
        return Ok(Vec::new());
    }

    let files = repository.files(turn.tree)?;
    let outputs = files
        .into_iter()
        .filter(|(name, _)| name.starts_with(artifact::STEPS) && name.ends_with("/output.md"));
    Ok(outputs
        .map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
        .collect())
}
