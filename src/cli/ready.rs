//! A model for a command that needs one: where none is configured, a person sets one up on the
//! way.

use std::path::{Path, PathBuf};

use super::app::App;
use super::failure::Diagnosis;
use super::kind::FailureKind;
use crate::config::edit::NewModel;
use crate::config::layer::{self, Layer};
use crate::config::settings::Settings;
use crate::git::repository::Repository;
use crate::host::process;
use crate::model::ModelError;
use crate::model::found::FoundModels;
use crate::model::found::offer::ModelOffer;
use crate::model::found::service;
use crate::model::settings::ModelConfig;
use crate::ui::ask;
use crate::ui::choose::choose;
use crate::ui::setup as words;
use crate::ui::style::{StyledLine, Tone, block};
use crate::workflow::project::Project;
use crate::workflow::setup::{self, KeptModel, TriedModel};

/// Where a model is set up.
pub(super) struct SetupGround {
    /// The user's configuration file.
    pub file: PathBuf,
    /// The repository in use, if there is one.
    pub repository: Option<PathBuf>,
    /// What is configured so far.
    pub settings: anyhow::Result<Settings>,
}

impl App {
    /// Makes sure that there is a model before a command asks one; `named` is the model or the
    /// pipeline that the command line names. Who does not want to set one up goes on without, and
    /// the command says what it lacks.
    ///
    /// # Errors
    /// Where the terminal is gone, or the settings cannot be read.
    pub(super) fn ready_model(
        &self,
        project: &mut Project,
        named: Option<&str>,
    ) -> anyhow::Result<()> {
        let settings = &project.settings;
        let is_ready = named.is_some() || settings.model.is_some() || settings.pipeline.is_some();
        if is_ready || !self.is_attended() || !setup::is_looking() {
            return Ok(());
        }

        self.say("No model is configured yet. Looking for one ...");
        let found = setup::look(Some(project.repository.workdir()), &[]);
        let Some(model) = self.set_up((&found, None), &project.places.config_file)? else {
            return Ok(());
        };

        if let Some(settings) = model.entry {
            project
                .settings
                .models
                .insert(model.model.clone(), settings);
        }
        project.settings.model = Some(model.model);
        process::withhold(project.settings.key_variables());
        Ok(())
    }

    /// As [`App::ready_model`], for a loop: a plan that waits is run first, and needs none.
    ///
    /// # Errors
    /// As for [`App::ready_model`].
    pub(super) fn ready_to_resume(
        &self,
        project: &mut Project,
        named: Option<&str>,
    ) -> anyhow::Result<()> {
        let waits = |project: &Project| {
            let tip = project.store().tip(&project.session()?)?;
            anyhow::Ok(project.store().draft(&tip)?.is_planned())
        };
        // What is wrong with the session the command itself says.
        if waits(project).unwrap_or(true) {
            return Ok(());
        }
        self.ready_model(project, named)
    }

    /// As [`App::ready_model`], to send a turn's input again: one that records its model needs no
    /// other.
    ///
    /// # Errors
    /// As for [`App::ready_model`].
    pub(super) fn ready_to_retry(
        &self,
        project: &mut Project,
        (turn, named): (&str, Option<&str>),
    ) -> anyhow::Result<()> {
        let recorded = |project: &Project| {
            let meta = project.store().turn(&project.session_of(turn)?, turn)?.meta;
            anyhow::Ok(meta.model.is_some() || meta.pipeline.is_some())
        };
        if recorded(project).unwrap_or(true) {
            return Ok(());
        }
        self.ready_model(project, named)
    }

    /// Adds to the hint for somebody who has no model, and could not be asked, what was found on
    /// this machine.
    pub(super) fn completed(&self, mut judged: Diagnosis) -> Diagnosis {
        if judged.kind != FailureKind::NoModel || self.is_attended() || !setup::is_looking() {
            return judged;
        }

        let repository = self.setup_repository();
        let found = words::in_a_line(&setup::look(repository.as_deref(), &[]));
        judged.hint = match (found, judged.hint) {
            (Some(found), Some(hint)) => Some(format!("{found}; {hint}")),
            (found, hint) => found.or(hint),
        };
        judged
    }

    /// Returns the repository in use, if there is one.
    fn setup_repository(&self) -> Option<PathBuf> {
        let home = self.places().ok()?.home;
        let repository = Repository::discover(&self.folder().ok()?, home.as_deref()).ok()?;
        Some(repository.workdir().to_owned())
    }

    /// Returns where a model is set up, in a repository or outside of one.
    ///
    /// # Errors
    /// Where there is no home directory, or the folder in use is gone.
    pub(super) fn setup_ground(&self) -> anyhow::Result<SetupGround> {
        let file = self.places()?.config_file;
        let repository = self.setup_repository();
        let settings = match &repository {
            Some(_) => self.open().map(|project| project.settings),
            None => Layer::read(&file)
                .and_then(|layer| layer::merge(&[layer]))
                .map_err(Into::into),
        };

        Ok(SetupGround {
            file,
            repository,
            settings,
        })
    }

    /// Lets the person choose a model, tries it and writes it down; nothing where they leave. It
    /// keeps its entry, so that it can be used at once.
    ///
    /// # Errors
    /// Where the terminal is gone, or the person stops it.
    pub(super) fn set_up(
        &self,
        (found, configured): (&FoundModels, Option<&str>),
        file: &Path,
    ) -> anyhow::Result<Option<NewModel>> {
        let offers = found.offers();
        let rows = words::rows(&offers);
        self.tell_lines(&words::introduction(found, configured));
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
            let (kept, outcome) = setup::keep(file, model);
            self.tell_kept(file, &kept, &outcome);
            return Ok(Some(NewModel { entry, ..kept }));
        }
    }

    /// Tries an offer, after a question where that costs money; tells whether it can be taken.
    fn try_offer(&self, offer: &ModelOffer) -> anyhow::Result<bool> {
        if offer.is_paid && !ask::yes_or_end(&words::paid(&offer.name))? {
            return Ok(true);
        }

        self.say(&format!("Trying {} ...", offer.name));
        let config = ModelConfig::from_config(&offer.name, &offer.settings);
        match config.and_then(|config| attempt(&offer.name, &config)) {
            Ok(tried) => {
                self.say_lines(&[words::answered(&tried)]);
                Ok(true)
            }
            Err(error @ ModelError::Interrupted { .. }) => Err(error.into()),
            Err(error) => {
                self.tell_lines(&words::failed(&offer.name, &error));
                Ok(false)
            }
        }
    }

    /// Says where a model was written, or what to write by hand.
    pub(super) fn tell_kept(&self, file: &Path, model: &NewModel, kept: &KeptModel) {
        let (name, file) = (&model.model, file.display());
        match kept {
            KeptModel::Written => self.say(&format!("Wrote `model: {name}` to {file}.")),
            KeptModel::Unchanged => self.say(&format!("{file} says `model: {name}` already.")),
            KeptModel::ByHand(why) => {
                self.warn(&format!(
                    "`{file}` was left as it is: {why}; for later calls, write there:"
                ));
                self.tell_lines(&block(Tone::Accent, &model.lines()));
            }
        }
        words::note(name).iter().for_each(|note| self.say(note));
    }
}

/// Tries a model by its settings.
///
/// # Errors
/// Why it does not answer.
pub(super) fn attempt(name: &str, config: &ModelConfig) -> Result<TriedModel, ModelError> {
    // Outside of a project nobody has withheld them yet.
    process::withhold(service::variables().map(str::to_owned));
    setup::attempt(name, config)
}

/// Returns lines as they are told to a person.
pub(super) fn shown(settings: &Settings, file: &Path, found: &FoundModels) -> Vec<StyledLine> {
    let mut lines = words::configured(settings, &file.display().to_string());
    lines.push(StyledLine::default());
    lines.extend(words::found(found, settings.model.as_deref()));
    lines
}
