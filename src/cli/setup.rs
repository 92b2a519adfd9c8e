//! `teddy setup`: finds, tests and configures models. Commands that lack a model offer the same.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::app::App;
use super::complete;
use super::exit::{self, ExitStatus};
use super::failure::{Diagnosis, FailureKind, InvalidArgument};
use crate::config::edit::{NewModel, flow};
use crate::config::layer::{self, Layer};
use crate::config::settings::{ModelKind, ModelSettings, Settings};
use crate::git::repository::Repository;
use crate::host::screen::why_no_prompt;
use crate::host::{interrupt, process};
use crate::model::ModelError;
use crate::model::discovery::server::{self, ServerAddress};
use crate::model::discovery::{FoundModels, ModelOffer};
use crate::model::known::usual_keys;
use crate::project::Project;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;
use crate::ui::ask::{self, choose};
use crate::ui::setup as words;
use crate::ui::style::{StyledLine, Tone, block};
use crate::workflow::setup::{self, KeptModel, TriedModel};
use crate::workflow::user::NobodyToAsk;

/// Find the models on this machine, test one and save it
///
/// Looks for API keys in the environment, for programs on the PATH that can answer, and for servers
/// on this machine. Of your configuration only `model` and an entry of `models` are written; keys
/// never are.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy setup                              choose one from a list\n  teddy setup --list                       what there is, and what is configured\n  teddy setup --model claude\n  teddy setup --model openai:gpt-5.6-terra\n  teddy setup --model ollama:qwen3-coder\n  teddy setup --server http://box:8080 --list"
)]
pub(super) struct Args {
    /// Set up this model: a name from the list, `name:id` for another model there, or `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
    /// Write it down without asking it anything
    #[arg(long, requires = "model")]
    no_try: bool,
    /// Only list what was found and what is configured
    #[arg(long, conflicts_with = "model")]
    list: bool,
    /// Also ask the server at this address for its models
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url)]
    server: Vec<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let servers = args.server.iter().map(|address| parse_server(address));
    let servers = servers.collect::<anyhow::Result<Vec<_>>>()?;
    let context = app.setup_context()?;
    let detected = setup::scan_models(context.repository.as_deref(), &servers);
    for (address, why) in &detected.silent {
        app.warn(&format!(
            "no model server answers at {}: {}",
            sanitize_line(&address.origin),
            sanitize_line(why)
        ));
    }
    if args.list {
        return list(app, context, &detected);
    }
    if let Some(model) = &args.model {
        return set(app, context, &detected, model, !args.no_try);
    }

    if !app.is_attended() {
        let message = format!("{}, so no model can be chosen", why_no_prompt());
        let hint = words::one_line(&detected)
            .unwrap_or_else(|| "`teddy setup --model <name>` names one".to_owned());
        return Err(NobodyToAsk::new(message, hint).into());
    }
    let settings = context.settings.as_ref().ok();
    let configured = settings.and_then(|settings| settings.model.as_deref());
    match app.set_up(&detected, configured, &context.file)? {
        Some(_) => {
            app.note("Next: teddy start '<what you want>', in a repository");
            Ok(exit::SUCCESS)
        }
        None => {
            app.note("Nothing was changed.");
            Ok(exit::FAILED)
        }
    }
}

fn parse_server(address: &str) -> anyhow::Result<ServerAddress> {
    server::parse_address(address).ok_or_else(|| {
        let message = format!("`{address}` is not the address of a server");
        let hint = "write it like `http://127.0.0.1:8080`";
        InvalidArgument::error(message, hint)
    })
}

fn list(app: &App, context: SetupContext, detected: &FoundModels) -> anyhow::Result<ExitStatus> {
    let settings = context.settings?;
    if app.global.json {
        app.print_json(&listed(
            &settings,
            &context.file.display().to_string(),
            detected,
        ))?;
        return Ok(exit::SUCCESS);
    }

    let mut lines = words::configured(&settings, &context.file.display().to_string());
    lines.push(StyledLine::default());
    let model = settings.model.as_deref();
    lines.extend(words::describe_detected(detected, model));
    app.print_lines(lines)?;
    app.note("`teddy setup --model <name>` tries one and writes it down.");
    Ok(exit::SUCCESS)
}

fn listed(settings: &Settings, file: &str, detected: &FoundModels) -> Value {
    let models = settings.models.iter().map(|(name, model)| {
        let id = Some(&model.id).filter(|id| !id.is_empty());
        json!({ "name": name, "kind": model.kind.name(), "id": id })
    });
    let keys = detected.keys.iter();
    let keys = keys.map(|key| json!({ "service": key.provider.name, "variable": key.variable }));
    let programs = detected.programs.iter().map(|program| {
        json!({
            "name": program.entry.name,
            "version": program.version,
            "path": program.path.to_string_lossy(),
            "refused": program.refusal(),
        })
    });
    let servers = detected.servers.iter().map(|server| {
        json!({ "name": server.address.name, "url": server.address.origin, "models": server.models })
    });
    let offers = detected.offers().into_iter().map(|offer| {
        let settings: Value = serde_yaml::from_str(&flow(&offer.settings)).unwrap_or_default();
        json!({
            "name": offer.name,
            "about": offer.about,
            "what": offer.summary,
            "paid": offer.is_paid,
            "settings": settings,
        })
    });

    json!({
        "file": file,
        "model": settings.model,
        "models": models.collect::<Vec<_>>(),
        "keys": keys.collect::<Vec<_>>(),
        "programs": programs.collect::<Vec<_>>(),
        "servers": servers.collect::<Vec<_>>(),
        "offers": offers.collect::<Vec<_>>(),
    })
}

struct ChosenModel {
    /// Entry to save.
    model: NewModel,
    /// Settings for the test.
    config: ModelSettings,
    is_paid: bool,
}

/// Sets up the model that an argument refers to.
fn set(
    app: &App,
    context: SetupContext,
    detected: &FoundModels,
    word: &str,
    is_tried: bool,
) -> anyhow::Result<ExitStatus> {
    let settings = context.settings.unwrap_or_default();
    let chosen = choose_model(&settings, detected, word)?;
    let may_ask = |chosen: &ChosenModel| !chosen.is_paid || !app.is_attended();
    let is_tried = is_tried
        && chosen.config.kind != ModelKind::Manual
        && (may_ask(&chosen) || yes_unless_interrupted(&words::paid(&chosen.model.model))?);
    let tried = if is_tried {
        Some(tried(app, &chosen)?)
    } else {
        None
    };

    let model = chosen.model;
    let (model, outcome) = setup::keep(&context.file, model, &app.user_dirs()?.cache);
    if let KeptModel::ByHand(why) = &outcome {
        let file = context.file.display();
        return Err(error_with_hint(
            format!("`{file}` was left as it is: {why}"),
            format!("write there:\n{}", model.lines().trim_end()),
        ));
    }

    if app.global.json {
        app.print_json(&json!({
            "model": model.model,
            "file": context.file.to_string_lossy(),
            "written": outcome == KeptModel::Written,
            "answer": tried.as_ref().map(|tried| tried.answer.trim()),
            "seconds": tried.as_ref().map(|tried| tried.duration.as_secs_f64()),
        }))?;
    } else {
        app.report_kept(&context.file, &model, &outcome);
    }
    Ok(exit::SUCCESS)
}

/// Resolves an argument: a configured model, an available one, or `kind:id`.
fn choose_model(
    settings: &Settings,
    detected: &FoundModels,
    word: &str,
) -> anyhow::Result<ChosenModel> {
    let offer = detected
        .find_offer(word)
        .filter(|_| !settings.models.contains_key(word));
    if let Some(offer) = offer {
        return Ok(ChosenModel {
            config: offer.settings.clone(),
            is_paid: offer.is_paid,
            model: offer.to_new(),
        });
    }

    let config = ModelSettings::resolve(word, settings)?;
    Ok(ChosenModel {
        model: NewModel {
            model: word.to_owned(),
            entry: None,
        },
        is_paid: config.kind.is_remote(),
        config,
    })
}

fn tried(app: &App, chosen: &ChosenModel) -> anyhow::Result<TriedModel> {
    let name = &chosen.model.model;
    app.note(&format!("Trying {name} ..."));
    let tried = try_model(name, &chosen.config);
    if tried.is_err() {
        app.note("It does not answer, and nothing was written; `--no-try` writes it down untried.");
    }

    let tried = tried?;
    app.note_lines(&[words::answered(&tried)]);
    Ok(tried)
}

/// Where a model is set up.
struct SetupContext {
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
    fn setup_context(&self) -> anyhow::Result<SetupContext> {
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
    fn set_up(
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
    fn report_kept(&self, file: &Path, model: &NewModel, outcome: &KeptModel) {
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
fn yes_unless_interrupted(question: &str) -> io::Result<bool> {
    let is_yes = ask::yes_or_end(question)?;
    match interrupt::requested() {
        true => Err(io::ErrorKind::Interrupted.into()),
        false => Ok(is_yes),
    }
}

fn try_model(name: &str, config: &ModelSettings) -> Result<TriedModel, ModelError> {
    // Outside a project, nothing has withheld these variables from child processes yet.
    process::withhold_env(usual_keys());
    setup::attempt(name, config)
}
