//! `teddy change`: takes a change through its documents. One file per command or group of small
//! commands.

mod implement;
mod log;
mod plan;
mod show;
mod status;
mod steps;

use std::process::ExitCode;

use clap::Subcommand;

use super::app::App;
use super::complete;
use crate::project::Project;
use crate::workflow::change::ChangeOptions;

/// Take a change through its documents: plan, challenge, implement, review, archive
///
/// A change lives at the ref refs/teddy/changes/<id>; each step is a commit with STATE.yaml,
/// proposal.md, specs/*.md and tasks.md. `plan`, `impl` and `archive` run whatever step the phase
/// calls for; the other commands are the individual steps. `change.roles` sets the models of the
/// author, challenger, implementer and reviewer.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change plan add-auth 'People log in with a password'\n  teddy change impl add-auth -y\n  teddy change archive add-auth\n  git log refs/teddy/changes/add-auth"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: ChangeCommand,
}

/// A command on changes.
#[derive(Subcommand)]
enum ChangeCommand {
    Plan(plan::Args),
    Impl(implement::Args),
    Archive(steps::ArchiveArgs),
    Proposal(steps::ProposalArgs),
    Challenge(steps::Challenge),
    Reproposal(steps::Reproposal),
    /// Work on the open tasks of a change and on the findings of its last review
    #[command(
        after_help = "Examples:\n  teddy change implement add-auth\n  teddy change implement add-auth -y"
    )]
    Implement(implement::Args),
    Review(steps::ReviewArgs),
    Approve(steps::ApproveArgs),
    Validate(status::Validate),
    Status(status::Args),
    List(status::ListArgs),
    Show(show::Args),
    Log(log::Args),
    Diff(log::DiffArgs),
}

/// Options of every step that asks a model.
#[derive(clap::Args)]
struct ModelFlags {
    /// The model of every role, in place of `change.roles`: a name of the configuration, or
    /// `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
}

impl ModelFlags {
    /// Opens the project for a step that calls a model.
    fn project(&self, app: &App) -> anyhow::Result<Project> {
        let mut project = app.project()?;
        if project.settings.change.roles.is_empty() {
            // A pipeline produces plans, not documents, so a plain model is required.
            app.ensure_model(&mut project, self.model.as_deref())?;
        }

        Ok(project)
    }

    fn to_options(&self) -> ChangeOptions {
        ChangeOptions {
            model: self.model.clone(),
            message: None,
        }
    }
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    match args.command {
        ChangeCommand::Plan(args) => plan::run(args, app),
        ChangeCommand::Impl(args) => implement::run(args, app),
        ChangeCommand::Archive(args) => steps::archive_change(args, app),
        ChangeCommand::Proposal(args) => steps::proposal(args, app),
        ChangeCommand::Challenge(args) => steps::challenge(args, app),
        ChangeCommand::Reproposal(args) => steps::reproposal(args, app),
        ChangeCommand::Implement(args) => implement::implement(args, app),
        ChangeCommand::Review(args) => steps::review(args, app),
        ChangeCommand::Approve(args) => steps::approve_change(args, app),
        ChangeCommand::Validate(args) => status::validate(args, app),
        ChangeCommand::Status(args) => status::run(args, app),
        ChangeCommand::List(args) => status::list(args, app),
        ChangeCommand::Show(args) => show::run(args, app),
        ChangeCommand::Log(args) => log::run(args, app),
        ChangeCommand::Diff(args) => log::diff(args, app),
    }
}
