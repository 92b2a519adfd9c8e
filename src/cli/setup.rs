//! `teddy setup`: finds, tests and configures models.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::app::App;
use super::complete;
use super::exit;
use super::failure::WrongWord;
use super::ready::{SetupGround, attempt, shown};
use crate::config::edit::{NewModel, flow};
use crate::config::settings::Settings;
use crate::host::screen::why_nobody;
use crate::model::found::FoundModels;
use crate::model::found::server::{self, ServerAddress};
use crate::model::settings::{ModelConfig, ModelKind};
use crate::ui::ask;
use crate::ui::setup as words;
use crate::ui::style;
use crate::workflow::hinted::hinted;
use crate::workflow::setup::{self, KeptModel, TriedModel};
use crate::workflow::user::NobodyToAsk;

/// Find the models on this machine, try one, and write it into your configuration
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

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let servers = args.server.iter().map(|address| named(address));
    let servers = servers.collect::<anyhow::Result<Vec<_>>>()?;
    let ground = app.setup_ground()?;
    let found = setup::look(ground.repository.as_deref(), &servers);
    if args.list {
        return list(app, ground, &found);
    }
    if let Some(model) = &args.model {
        return set(app, ground, (&found, model), !args.no_try);
    }

    if !app.is_attended() {
        let what = format!("{}, so no model can be chosen", why_nobody());
        let hint = words::in_a_line(&found)
            .unwrap_or_else(|| "`teddy setup --model <name>` names one".to_owned());
        return Err(NobodyToAsk::new(what, hint).into());
    }
    let settings = ground.settings.as_ref().ok();
    let configured = settings.and_then(|settings| settings.model.as_deref());
    match app.set_up((&found, configured), &ground.file)? {
        Some(_) => {
            app.say("Next: teddy start '<what you want>', in a repository");
            Ok(exit::DONE.into())
        }
        None => {
            app.say("Nothing was changed.");
            Ok(exit::FAILED.into())
        }
    }
}

fn named(address: &str) -> anyhow::Result<ServerAddress> {
    server::named(address).ok_or_else(|| {
        let what = format!("`{address}` is not the address of a server");
        let hint = "write it like `http://127.0.0.1:8080`".to_owned();
        WrongWord { what, hint }.into()
    })
}

/// Lists configured and available models.
fn list(app: &App, ground: SetupGround, found: &FoundModels) -> anyhow::Result<ExitCode> {
    let settings = ground.settings?;
    if app.global.json {
        app.print_json(&listed(
            &settings,
            &ground.file.display().to_string(),
            found,
        ))?;
        return Ok(exit::DONE.into());
    }

    let lines = shown(&settings, &ground.file, found);
    app.print(style::text(&lines, app.paint_results()))?;
    app.say("`teddy setup --model <name>` tries one and writes it down.");
    Ok(exit::DONE.into())
}

fn listed(settings: &Settings, file: &str, found: &FoundModels) -> Value {
    let models = settings.models.iter().map(|(name, model)| {
        let id = Some(&model.id).filter(|id| !id.is_empty());
        json!({ "name": name, "kind": model.kind, "id": id })
    });
    let keys = found.keys.iter();
    let keys = keys.map(|key| json!({ "service": key.service.name, "variable": key.variable }));
    let programs = found.programs.iter().map(|program| {
        json!({
            "name": program.known.name,
            "version": program.version,
            "path": program.path.to_string_lossy(),
            "refused": program.refusal(),
        })
    });
    let servers = found.servers.iter().map(|server| {
        json!({ "name": server.address.name, "url": server.address.origin, "models": server.models })
    });
    let offers = found.offers().into_iter().map(|offer| {
        let settings: Value = serde_yaml::from_str(&flow(&offer.settings)).unwrap_or_default();
        json!({
            "name": offer.name,
            "about": offer.about,
            "what": offer.what,
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

/// Model that an argument refers to.
struct NamedModel {
    /// Entry to save.
    model: NewModel,
    /// Settings for the test.
    config: ModelConfig,
    is_paid: bool,
}

/// Sets up the model that an argument refers to.
fn set(
    app: &App,
    ground: SetupGround,
    (found, word): (&FoundModels, &str),
    is_tried: bool,
) -> anyhow::Result<ExitCode> {
    let settings = ground.settings.unwrap_or_default();
    let named = meant(&settings, found, word)?;
    let may_ask = |named: &NamedModel| !named.is_paid || !app.is_attended();
    let is_tried = is_tried
        && named.config.kind != ModelKind::Manual
        && (may_ask(&named) || ask::yes_or_end(&words::paid(&named.model.model))?);
    let tried = if is_tried {
        Some(tried(app, &named)?)
    } else {
        None
    };

    let model = named.model;
    let (model, kept) = setup::keep(&ground.file, model);
    if let KeptModel::ByHand(why) = &kept {
        let file = ground.file.display();
        return Err(hinted(
            format!("`{file}` was left as it is: {why}"),
            format!("write there:\n{}", model.lines().trim_end()),
        ));
    }

    if app.global.json {
        app.print_json(&json!({
            "model": model.model,
            "file": ground.file.to_string_lossy(),
            "written": kept == KeptModel::Written,
            "answer": tried.as_ref().map(|tried| tried.answer.trim()),
            "seconds": tried.as_ref().map(|tried| tried.duration.as_secs_f64()),
        }))?;
    } else {
        app.tell_kept(&ground.file, &model, &kept);
    }
    Ok(exit::DONE.into())
}

/// Resolves an argument: a configured model, an available one, or `kind:id`.
fn meant(settings: &Settings, found: &FoundModels, word: &str) -> anyhow::Result<NamedModel> {
    let offer = found
        .named(word)
        .filter(|_| !settings.models.contains_key(word));
    if let Some(offer) = offer {
        return Ok(NamedModel {
            config: ModelConfig::from_config(&offer.name, &offer.settings)?,
            is_paid: offer.is_paid,
            model: offer.to_new(),
        });
    }

    let config = ModelConfig::named(word, settings)?;
    Ok(NamedModel {
        model: NewModel {
            model: word.to_owned(),
            entry: None,
        },
        is_paid: matches!(config.kind, ModelKind::Openai | ModelKind::Anthropic),
        config,
    })
}

fn tried(app: &App, named: &NamedModel) -> anyhow::Result<TriedModel> {
    let name = &named.model.model;
    app.say(&format!("Trying {name} ..."));
    let tried = attempt(name, &named.config);
    if tried.is_err() {
        app.say("It does not answer, and nothing was written; `--no-try` writes it down untried.");
    }

    let tried = tried?;
    app.say_lines(&[words::answered(&tried)]);
    Ok(tried)
}
