//! `teddy hooks`: lets an agent report its prompts.

pub(super) mod hook;

use std::path::PathBuf;

use serde_json::json;

use super::app::App;
use super::exit::{self, ExitStatus};
use crate::text::diff::unified;
use crate::text::sanitize::sanitize_block;
use crate::ui::style::{Tone, block};
use crate::workflow::hooks;
use crate::workflow::hooks::hook_file::{EntryState, HookChange, HookFile, HookForm};
use crate::workflow::hooks::take::begin_notify;
use crate::workflow::hooks::{HookedAgent, hooks_dir};

/// Record a turn for each prompt to an agent that you run
///
/// Adds an entry to the agent's own settings, or removes it. With it, each prompt becomes a turn of
/// a session for the agent's conversation: your prompt, an excerpt of the transcript, and the
/// changes of your files. The current session stays the same. The agent does not wait and gets no
/// output.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy hooks install claude          in this project's .claude/settings.json\n  teddy hooks install codex --user    in ~/.codex/hooks.json\n  teddy hooks remove claude\n  teddy hooks status"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: HooksCommand,
}

/// What to do with an entry.
#[derive(clap::Subcommand)]
enum HooksCommand {
    /// Add the entry, after showing it
    #[command(
        after_help = "Examples:\n  teddy hooks install claude\n  teddy hooks install gemini --user -y"
    )]
    Install(HookChoice),
    /// Remove the entry, and nothing else
    #[command(
        after_help = "Examples:\n  teddy hooks remove claude\n  teddy hooks remove codex --user"
    )]
    Remove(HookChoice),
    /// Show where the entry is, and what went wrong since the last turn
    #[command(after_help = "Examples:\n  teddy hooks status\n  teddy hooks status claude")]
    Status {
        /// The agent; all of them without it
        #[arg(value_parser = ["claude", "codex", "gemini"])]
        agent: Option<String>,
    },
}

/// Which entry.
#[derive(clap::Args)]
struct HookChoice {
    /// The agent
    #[arg(value_parser = ["claude", "codex", "gemini"])]
    agent: String,
    /// In the project's settings, which others may share (the default, but for codex)
    #[arg(long, group = "scope")]
    project: bool,
    /// In your own settings, for every repository
    #[arg(long, group = "scope")]
    user: bool,
    /// Use `notify` of a Codex without hooks, which reports only the end of a prompt
    #[arg(long, conflicts_with = "project")]
    notify: bool,
    /// Show what would change without changing anything
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    match args.command {
        HooksCommand::Install(choice) => change(app, &choice, HookFile::to_install),
        HooksCommand::Remove(choice) => change(app, &choice, HookFile::to_remove),
        HooksCommand::Status { agent } => status(app, agent.as_deref()),
    }
}

/// Returns an agent by its name, which the parser has validated.
fn parse_agent(name: &str) -> HookedAgent {
    HookedAgent::from_name(name).expect("the command line takes only agents")
}

/// Returns the settings file that a choice names.
fn chosen_file(app: &App, choice: &HookChoice) -> anyhow::Result<HookFile> {
    let agent = parse_agent(&choice.agent);
    let form = match choice.notify {
        true => HookForm::Notify,
        false => HookForm::Events,
    };
    if choice.notify && agent != HookedAgent::Codex {
        anyhow::bail!("`--notify` is for `codex` only");
    }
    if choice.user || (agent == HookedAgent::Codex && !choice.project) {
        return HookFile::of_user(agent, form, app.user_dirs()?.home.as_deref());
    }
    Ok(HookFile::of_project(
        agent,
        app.project()?.repository.workdir(),
    ))
}

/// Shows a change, asks, and writes it.
fn change(
    app: &App,
    choice: &HookChoice,
    make: fn(&HookFile) -> anyhow::Result<HookChange>,
) -> anyhow::Result<ExitStatus> {
    let file = chosen_file(app, choice)?;
    let change = make(&file)?;
    let is_new = change.before != change.after;
    let report =
        |written: bool| json!({ "file": file.path(), "changed": is_new, "written": written });

    if !app.global.json {
        app.print(render_diff(app, &file.path(), &change))?;
    }
    if !is_new || choice.dry_run {
        app.note(&match is_new {
            true => "Nothing was written.".to_owned(),
            false => format!("`{}` needs no change.", file.path().display()),
        });
        return finish(app, &report(false));
    }

    let (ask, confirmation) = match change.after {
        Some(_) => ("Write", "Wrote"),
        None => ("Remove", "Removed"),
    };
    let question = format!("{ask} `{}`?", file.path().display());
    if !choice.yes && !app.user_of_no_project().confirm(&question, "-y")? {
        app.note("Nothing was written.");
        return Ok(exit::FAILED);
    }

    file.write(change, make)?;
    app.note(&format!("{confirmation} `{}`.", file.path().display()));
    if file.state()? == EntryState::Installed {
        installed(app, choice)?;
    }
    finish(app, &report(true))
}

/// Prepares for the first prompt.
fn installed(app: &App, choice: &HookChoice) -> anyhow::Result<()> {
    if choice.notify {
        // Codex reports only the end of a prompt, so the state before the first one is recorded now.
        let Ok(project) = app.open() else {
            return Ok(());
        };
        let mut user = app.user(&project, true);
        return begin_notify(&project, user.as_mut());
    }
    match parse_agent(&choice.agent) {
        HookedAgent::Codex => app.note(
            "Codex runs new hooks only when you trust them: start `codex` and enter `/hooks`.",
        ),
        HookedAgent::Gemini if !choice.user => app.note(
            "Gemini CLI runs a project's hooks only in a folder that you trust for good: not with `--skip-trust`.",
        ),
        _ => {}
    }
    Ok(())
}

fn finish(app: &App, report: &serde_json::Value) -> anyhow::Result<ExitStatus> {
    if app.global.json {
        app.print_json(report)?;
    }
    Ok(exit::SUCCESS)
}

fn render_diff(app: &App, path: &std::path::Path, change: &HookChange) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_default();
    let name = path.display().to_string();
    let text = unified(&text(&change.before), &text(&change.after), (&name, &name));
    let lines = block(Tone::Plain, &sanitize_block(&text));
    crate::ui::style::text(&lines, app.paint_results())
}

/// Shows which entries are installed, and recent failures.
fn status(app: &App, only: Option<&str>) -> anyhow::Result<ExitStatus> {
    let project = app.open().ok();
    let mut rows = Vec::new();
    let agents = HookedAgent::ALL.into_iter();
    for agent in agents.filter(|agent| only.is_none_or(|only| only == agent.name())) {
        let home = app.user_dirs()?.home;
        let own = HookFile::of_user(agent, HookForm::Events, home.as_deref());
        let project = project.as_ref().map(|project| project.repository.workdir());
        let shared = project.map(|dir| Ok(HookFile::of_project(agent, dir)));
        let notify = (agent == HookedAgent::Codex)
            .then(|| HookFile::of_user(agent, HookForm::Notify, home.as_deref()));
        for (scope, file) in [("project", shared), ("user", Some(own)), ("notify", notify)] {
            let Some(file) = file else { continue };
            let (path, state) = match file {
                Ok(file) => (Some(file.path()), file.state()),
                Err(error) => (None, Err(error)),
            };
            rows.push(HookRow::of(agent, scope, path, state));
        }
    }

    let troubles =
        project.map(|project| hooks::read_errors(&hooks_dir(&project.repository.teddy_dir())));
    let troubles = troubles.unwrap_or_default();
    if app.global.json {
        app.print_json(&json!({ "hooks": rows, "troubles": troubles }))?;
        return Ok(exit::SUCCESS);
    }

    let lines = rows.iter().map(HookRow::line);
    app.print(lines.collect::<String>())?;
    for line in &troubles {
        app.warn(&sanitize_block(line));
    }
    Ok(exit::SUCCESS)
}

/// State of our entries in a settings file.
#[derive(serde::Serialize)]
struct HookRow {
    agent: &'static str,
    /// `project` or `user`; `notify` for the user's `notify` of Codex.
    scope: &'static str,
    file: Option<PathBuf>,
    /// `installed`, `partial`, `absent`, `foreign` or `unreadable`.
    state: &'static str,
    /// Other entries in the file, or the reason why it is unreadable.
    detail: Option<String>,
}

impl HookRow {
    fn of(
        agent: HookedAgent,
        scope: &'static str,
        file: Option<PathBuf>,
        state: anyhow::Result<EntryState>,
    ) -> HookRow {
        let (state, detail) = match state {
            Ok(EntryState::Installed) => ("installed", None),
            Ok(EntryState::Partial) => ("partial", None),
            Ok(EntryState::Absent) => ("absent", None),
            Ok(EntryState::Foreign(other)) => ("foreign", Some(other)),
            Err(error) => ("unreadable", Some(format!("{error:#}"))),
        };
        HookRow {
            agent: agent.name(),
            scope,
            file,
            state,
            detail,
        }
    }

    fn line(&self) -> String {
        let file = self.file.as_ref().map(|file| file.display().to_string());
        let detail = self.detail.as_deref().map(|detail| format!("  ({detail})"));
        let text = format!(
            "{:8} {:8} {:11} {}{}",
            self.agent,
            self.scope,
            self.state,
            file.unwrap_or_default(),
            detail.unwrap_or_default()
        );
        format!("{}\n", sanitize_block(&text).trim_end())
    }
}
