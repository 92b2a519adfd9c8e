//! Choosing and opening the model of a turn.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::change::id::ChangeId;
use crate::config::settings::Price;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::interrupt;
use crate::model::Model;
use crate::model::acting::ActingModel;
use crate::model::acting::open::{is_acting, open_acting};
use crate::model::open::open;
use crate::model::outside::Outside;
use crate::model::settings::{ModelConfig, ModelKind};
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::change;
use crate::workflow::hinted::hinted;
use crate::workflow::project::Project;

/// What a model has to say besides its answer: that a request is tried again.
pub type Notes = Rc<RefCell<Vec<String>>>;

/// A model by what its answer is.
pub enum OpenedModel {
    /// It writes its answer.
    Writes(Box<dyn Model>),
    /// It edits files; the answer is what it did.
    Acts(Box<dyn ActingModel>),
}

impl OpenedModel {
    /// Returns the name under which the user knows it.
    pub fn name(&self) -> &str {
        match self {
            OpenedModel::Writes(model) => model.name(),
            OpenedModel::Acts(model) => model.name(),
        }
    }
}

/// A model and what it costs.
pub struct PricedModel {
    /// The model.
    pub model: OpenedModel,
    /// Its price, where the configuration says.
    pub price: Option<Price>,
    /// The most tokens of an answer, where the configuration says.
    pub max_tokens: Option<u32>,
    /// Whether it never costs anything.
    pub is_free: bool,
    /// Whether it is a program, which can do more than answer.
    pub is_program: bool,
    /// What it has to say.
    pub notes: Notes,
}

/// No model is configured, by what it is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no model is configured")]
pub enum NoModel {
    /// A plan, which can come from elsewhere.
    Plan,
    /// A document of a change, or what is thought of one.
    Document,
}

impl NoModel {
    /// Returns what the user can do.
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

/// Returns the model of this name, or the configured one.
///
/// # Errors
/// [`NoModel`], or where it lacks a key or a setting.
pub fn choose(project: &Project, tip: &Turn, name: Option<&str>) -> anyhow::Result<PricedModel> {
    model(
        project,
        tip,
        name.or(project.settings.model.as_deref())
            .ok_or(NoModel::Plan)?,
    )
}

/// Returns the model of this name, or the configured one, for something that only a model can do
/// that writes its answer.
///
/// # Errors
/// As for [`choose`], and for a model that edits files itself.
pub fn writer(project: &Project, tip: &Turn, name: Option<&str>) -> anyhow::Result<PricedModel> {
    choose(project, tip, name)?.writing()
}

/// Opens a model by its name in the configuration, or by `kind:id`.
///
/// # Errors
/// As for [`choose`].
pub fn model(project: &Project, tip: &Turn, name: &str) -> anyhow::Result<PricedModel> {
    let settings = model_settings(project, name)?;
    let answered = if settings.kind == ModelKind::Replay {
        answers(project, tip, name)?
    } else {
        0
    };
    open_model(project, name, settings, answered)
}

/// Opens a model outside of a session: by its name in the configuration, or by `kind:id`;
/// `answered` counts the answers that it gave before, so that a replay goes on where it was.
///
/// # Errors
/// As for [`choose`].
pub fn model_after(project: &Project, name: &str, answered: usize) -> anyhow::Result<PricedModel> {
    let settings = model_settings(project, name)?;
    open_model(project, name, settings, answered)?.writing()
}

/// Returns the settings behind a model's name.
///
/// # Errors
/// Where it is neither a name of the configuration nor `kind:id`.
pub fn model_settings(project: &Project, name: &str) -> anyhow::Result<ModelConfig> {
    Ok(ModelConfig::named(name, &project.settings)?)
}

/// Opens the model that settings describe.
fn open_model(
    project: &Project,
    name: &str,
    mut settings: ModelConfig,
    answered: usize,
) -> anyhow::Result<PricedModel> {
    settings.path = settings
        .path
        .as_deref()
        .map(|path| answers_path(&project.repository, path));
    let notes = Notes::default();
    let outside = outside(project, &settings, answered, &notes)?;

    Ok(PricedModel {
        price: settings.price,
        max_tokens: settings.max_tokens,
        is_free: matches!(settings.kind, ModelKind::Replay | ModelKind::Manual),
        is_program: settings.kind == ModelKind::Command,
        model: if is_acting(settings.kind) {
            OpenedModel::Acts(open_acting(name, &settings, &outside)?)
        } else {
            OpenedModel::Writes(open(name, &settings, &outside)?)
        },
        notes,
    })
}

impl PricedModel {
    /// Returns the model if it writes its answer.
    ///
    /// # Errors
    /// It edits files instead.
    fn writing(self) -> anyhow::Result<PricedModel> {
        match &self.model {
            OpenedModel::Writes(_) => Ok(self),
            OpenedModel::Acts(model) => Err(hinted(
                format!(
                    "`{}` edits files itself, and here an answer in words is needed",
                    model.name()
                ),
                "`--model` names another one for this call; `teddy plan` and `teddy resume` take this one",
            )),
        }
    }
}

/// Returns what models need of the world.
fn outside(
    project: &Project,
    settings: &ModelConfig,
    answered: usize,
    notes: &Notes,
) -> anyhow::Result<Outside> {
    let notes = Rc::clone(notes);
    let mut outside = Outside {
        stopped: Rc::new(interrupt::requested),
        note: Rc::new(move |note| notes.borrow_mut().push(note.to_owned())),
        give: project.hands.give.clone(),
        take: project.hands.take.clone(),
        ..Outside::default()
    };

    outside.keys.extend(project.settings.key_variables());
    if settings.kind == ModelKind::Replay {
        outside.replayed = answered;
        let recorded = recorded(project, settings)?;
        outside.recorded = Rc::new(move |_| recorded.clone());
    }

    Ok(outside)
}

/// Returns where recorded answers are: seen from the folder in use, else from the project's
/// root.
fn answers_path(repository: &Repository, path: &Path) -> PathBuf {
    let at_root = repository.workdir().join(path);
    if !path.exists() && at_root.exists() {
        at_root
    } else {
        path.to_owned()
    }
}

/// Returns how many answers the session has had, so that a replay goes on where it was; a
/// change's session goes on behind the answers that the model gave for its documents.
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

/// Returns the answers of the session that a replay names, if its path is the name of one.
fn recorded(project: &Project, settings: &ModelConfig) -> anyhow::Result<Option<Vec<String>>> {
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

/// Returns the answers of a recorded session, oldest first; those of a pipeline's steps one by
/// one.
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

/// Returns the outputs of a turn's pipeline, in the order of its steps.
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
