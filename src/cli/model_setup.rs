//! Provides a model for commands that need one. If none is configured, offers to set one up.

use std::io;
use std::path::{Path, PathBuf};

use super::app::App;
use super::failure::Diagnosis;
use super::kind::FailureKind;
use crate::config::edit::NewModel;
use crate::config::layer::{self, Layer};
use crate::config::settings::{ModelSettings, Settings};
use crate::git::repository::Repository;
use crate::host::{interrupt, process};
use crate::model::ModelError;
use crate::model::discovery::{FoundModels, ModelOffer};
use crate::model::known::usual_keys;
use crate::project::Project;
use crate::ui::ask::choose;
use crate::ui::style::{StyledLine, Tone, block};
use crate::ui::{ask, setup as words};
use crate::workflow::setup::{self, KeptModel, TriedModel};

/// Where a model is set up.
pub(super) struct SetupContext {
    /// The user's configuration file.
    pub file: PathBuf,
    pub repository: Option<PathBuf>,
    pub settings: anyhow::Result<Settings>,
}

impl App {
    /// Ensures that a model is available before a command uses it. `named` is the model or pipeline
    /// given on the command line. If the user declines the setup, returns without one, and the
    /// command reports what is missing.
    pub(super) fn ensure_model(
        &self,
        project: &mut Project,
        requested: Option<&str>,
    ) -> anyhow::Result<()> {
        let settings = &project.settings;
        let is_ready =
            requested.is_some() || settings.model.is_some() || settings.pipeline.is_some();
        if is_ready || !self.is_attended() || !setup::is_looking() {
            return Ok(());
        }

        self.note("No model is configured yet. Looking for one ...");
        let detected = setup::scan_models(Some(project.repository.workdir()), &[]);
        let Some(model) = self.set_up(&detected, None, &project.user_dirs.config_file)? else {
            return Ok(());
        };

        if let Some(settings) = model.entry {
            project
                .settings
                .models
                .insert(model.model.clone(), settings);
        }
        project.settings.model = Some(model.model);
        process::withhold_env(project.settings.key_variables());
        Ok(())
    }

    /// Like [`App::ensure_model`], for a loop: a waiting plan runs first and needs no model.
    pub(super) fn ensure_model_to_resume(
        &self,
        project: &mut Project,
        requested: Option<&str>,
    ) -> anyhow::Result<()> {
        let waits = |project: &Project| {
            let tip = project.store().tip(&project.session()?)?;
            anyhow::Ok(project.store().draft(&tip)?.is_planned())
        };
        // The command itself reports problems with the session.
        if waits(project).unwrap_or(true) {
            return Ok(());
        }
        self.ensure_model(project, requested)
    }

    /// Like [`App::ensure_model`], for sending a turn's input again. A turn that recorded its model
    /// needs no other.
    pub(super) fn ensure_model_to_retry(
        &self,
        project: &mut Project,
        turn: &str,
        requested: Option<&str>,
    ) -> anyhow::Result<()> {
        let recorded = |project: &Project| {
            let meta = project.store().turn(&project.session_of(turn)?, turn)?.meta;
            anyhow::Ok(meta.model.is_some() || meta.pipeline.is_some())
        };
        if recorded(project).unwrap_or(true) {
            return Ok(());
        }
        self.ensure_model(project, requested)
    }

    /// Adds models found on this machine to the hint about a missing model, if the user could not
    /// be asked.
    pub(super) fn with_detected_models(&self, mut diagnosis: Diagnosis) -> Diagnosis {
        if diagnosis.kind != FailureKind::NoModel || self.is_attended() || !setup::is_looking() {
            return diagnosis;
        }

        let repository = self.setup_repository();
        let summary = words::one_line(&setup::scan_models(repository.as_deref(), &[]));
        diagnosis.hint = match (summary, diagnosis.hint) {
            (Some(summary), Some(hint)) => Some(format!("{summary}; {hint}")),
            (summary, hint) => summary.or(hint),
        };
        diagnosis
    }

    fn setup_repository(&self) -> Option<PathBuf> {
        let home = self.user_dirs().ok()?.home;
        let repository = Repository::discover(&self.dir().ok()?, home.as_deref()).ok()?;
        Some(repository.workdir().to_owned())
    }

    /// Returns where a model is set up, inside or outside a repository.
    pub(super) fn setup_context(&self) -> anyhow::Result<SetupContext> {
        let file = self.user_dirs()?.config_file;
        let repository = self.setup_repository();
        let settings = match &repository {
            Some(_) => self.open().map(|project| project.settings),
            None => Layer::read(&file)
                .and_then(|layer| layer::merge(&[layer]))
                .map_err(Into::into),
        };

        Ok(SetupContext {
            file,
            repository,
            settings,
        })
    }

    /// Lets the user choose a model, tests it and saves it; `None` if the user declines. The entry
    /// is kept in memory for immediate use.
    pub(super) fn set_up(
        &self,
        detected: &FoundModels,
        configured: Option<&str>,
        file: &Path,
    ) -> anyhow::Result<Option<NewModel>> {
        let offers = detected.offers();
        let rows = words::rows(&offers);
        self.eprint_lines(&words::introduction(detected, configured));
        loop {
            let Some(at) = choose(words::QUESTION, &rows)? else {
                return Ok(None);
            };
            let model = match offers.get(at) {
                Some(offer) if self.try_offer(offer)? => offer.to_new(),
                Some(_) => continue,
                None => NewModel {
                    model: words::MANUAL.to_owned(),
                    entry: None,
                },
            };

            let entry = model.entry.clone();
            let (stored, outcome) = setup::keep(file, model, &self.user_dirs()?.cache);
            self.report_kept(file, &stored, &outcome);
            return Ok(Some(NewModel { entry, ..stored }));
        }
    }

    /// Tests an offer, after a confirmation if that costs money. Returns whether it can be used.
    fn try_offer(&self, offer: &ModelOffer) -> anyhow::Result<bool> {
        if let Some(address) = offer.plain_address()
            && !yes_unless_interrupted(&words::plain(&offer.name, address))?
        {
            return Ok(false);
        }
        if offer.is_paid && !yes_unless_interrupted(&words::paid(&offer.name))? {
            return Ok(true);
        }

        self.note(&format!("Trying {} ...", offer.name));
        match try_model(&offer.name, &offer.settings) {
            Ok(tried) => {
                self.note_lines(&[words::answered(&tried)]);
                Ok(true)
            }
            Err(error @ ModelError::Interrupted { .. }) => Err(error.into()),
            Err(error) => {
                self.eprint_lines(&words::failed(&offer.name, &error));
                Ok(false)
            }
        }
    }

    /// Reports where a model was saved, or what to add manually.
    pub(super) fn report_kept(&self, file: &Path, model: &NewModel, outcome: &KeptModel) {
        let (name, file) = (&model.model, file.display());
        match outcome {
            KeptModel::Written => self.note(&format!("Wrote `model: {name}` to {file}.")),
            KeptModel::Unchanged => self.note(&format!("{file} says `model: {name}` already.")),
            KeptModel::ByHand(why) => {
                self.warn(&format!(
                    "`{file}` was left as it is: {why}; for later calls, write there:"
                ));
                self.eprint_lines(&block(Tone::Accent, &model.lines()));
            }
        }
        words::note(name).iter().for_each(|note| self.note(note));
    }
}

/// Asks yes or no. Ctrl-c is an error: a no keeps the model untested, an interrupt keeps nothing.
pub(super) fn yes_unless_interrupted(question: &str) -> io::Result<bool> {
    let is_yes = ask::yes_or_end(question)?;
    match interrupt::requested() {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(is_yes),
    }
}

pub(super) fn try_model(name: &str, config: &ModelSettings) -> Result<TriedModel, ModelError> {
    // Outside a project, nothing has withheld these variables from child processes yet.
    process::withhold_env(usual_keys());
    setup::attempt(name, config)
}

pub(super) fn describe_models(
    settings: &Settings,
    file: &Path,
    detected: &FoundModels,
) -> Vec<StyledLine> {
    let mut lines = words::configured(settings, &file.display().to_string());
    lines.push(StyledLine::default());
    lines.extend(words::describe_detected(
        detected,
        settings.model.as_deref(),
    ));
    lines
}
