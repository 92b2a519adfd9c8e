//! `teddy change`: takes a change through its documents.

mod show;
mod steps;

use clap::Subcommand;

use super::app::App;
use super::exit::ExitStatus;

/// Develop a change through its documents
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
    /// Plan a change: write the proposal, specs and tasks, then challenge and revise them until
    /// they pass
    ///
    /// Continues from the phase of the change. After `change.planning_iterations` reproposals the decision
    /// is yours: on a terminal you are asked, otherwise `teddy change approve` records it.
    #[command(
        after_help = "Examples:\n  teddy change plan add-auth 'People log in with a password'\n  teddy change plan add-auth\n  teddy change plan add-auth --json"
    )]
    Plan(steps::ProposalArgs),
    /// Implement a change: run the open tasks as turns of its session, then review and fix
    ///
    /// Continues where it stopped. Each plan is shown for approval as in `teddy execute`.
    #[command(
        after_help = "Examples:\n  teddy change impl add-auth\n  teddy change impl add-auth -y\n  teddy -s change/add-auth log\n\nExit codes: 0 complete, 1 not complete, 3 a plan was rejected, 4 a result overlaps with your own edits, 5 the model waits for your answer"
    )]
    Impl(steps::ImplementArgs),
    Archive(steps::ArchiveArgs),
    /// Write the missing documents of a change: proposal.md, specs/*.md, tasks.md
    #[command(
        after_help = "Examples:\n  teddy change proposal add-auth 'People log in with a password'"
    )]
    Proposal(steps::ProposalArgs),
    /// Have the documents of a change challenged; the verdict sets its phase
    #[command(
        after_help = "Examples:\n  teddy change challenge add-auth\n  teddy change challenge add-auth --model 'command:claude -p'"
    )]
    Challenge(steps::JudgeArgs),
    Reproposal(steps::ReproposalArgs),
    /// Work on the open tasks of a change and on the findings of its last review
    #[command(
        after_help = "Examples:\n  teddy change implement add-auth\n  teddy change implement add-auth -y"
    )]
    Implement(steps::ImplementArgs),
    /// Have the implementation of a change reviewed; approval completes it
    #[command(after_help = "Example:\n  teddy change review add-auth")]
    Review(steps::JudgeArgs),
    Approve(steps::ApproveArgs),
    Validate(show::ValidateArgs),
    Status(show::StatusArgs),
    List(show::ListArgs),
    Show(show::ShowArgs),
    Log(show::LogArgs),
    Diff(show::DiffArgs),
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    match args.command {
        ChangeCommand::Plan(args) => steps::plan(args, app),
        ChangeCommand::Impl(args) => steps::implement_and_review(args, app),
        ChangeCommand::Archive(args) => steps::archive(args, app),
        ChangeCommand::Proposal(args) => steps::propose(args, app),
        ChangeCommand::Challenge(args) => steps::challenge(args, app),
        ChangeCommand::Reproposal(args) => steps::revise(args, app),
        ChangeCommand::Implement(args) => steps::implement(args, app),
        ChangeCommand::Review(args) => steps::review(args, app),
        ChangeCommand::Approve(args) => steps::approve(args, app),
        ChangeCommand::Validate(args) => show::validate(args, app),
        ChangeCommand::Status(args) => Ok(show::status(args, app)?.into()),
        ChangeCommand::List(args) => Ok(show::list(args, app)?.into()),
        ChangeCommand::Show(args) => Ok(show::show(args, app)?.into()),
        ChangeCommand::Log(args) => Ok(show::log(args, app)?.into()),
        ChangeCommand::Diff(args) => Ok(show::diff(args, app)?.into()),
    }
}
