//! `teddy change plan`: writes, challenges and revises a proposal.

use std::process::ExitCode;

use super::super::app::App;
use super::super::complete;
use super::super::exit;
use super::{ModelFlags, implement, show};
use crate::change::id::ChangeId;
use crate::change::phase::ChangePhase;
use crate::project::Project;
use crate::text::counted;
use crate::workflow::change::ChangeOptions;
use crate::workflow::change::challenge::approve;
use crate::workflow::change::implement::implement_and_review;
use crate::workflow::change::open_change;
use crate::workflow::change::plan::{PlannedChange, plan_change};
use crate::workflow::change::proposal::Idea;
use crate::workflow::change::reproposal::revise_proposal;
use crate::workflow::user::{Choice, Question, User};

/// Plan a change: write the proposal, specs and tasks, then challenge and revise them until they
/// pass
///
/// Goes on where the change stands. After `change.planning_iterations` reproposals the decision is
/// yours: on a terminal you are asked, otherwise `teddy change approve` records it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change plan add-auth 'People log in with a password'\n  teddy change plan add-auth\n  teddy change plan add-auth --json"
)]
pub(super) struct Args {
    /// The change's id: lower-case words joined by hyphens
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// What it is for; needed for a new change, ignored otherwise
    description: Option<String>,
    #[command(flatten)]
    how: ModelFlags,
}

/// Plans, reports the result, and asks how to continue.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let mut project = args.how.project(app)?;
    let mut user = app.user(&project, false);
    let options = args.how.to_options();
    let mut planned = plan_change(
        &project,
        &Idea {
            id: &id,
            description: args.description.as_deref(),
        },
        &options,
        user.as_mut(),
    )?;

    loop {
        print(app, &planned)?;
        if !app.is_attended() {
            break;
        }

        match next(&planned, user.as_mut())? {
            Some('v') => app.page_markdown(
                &project,
                show::everything(&open_change(&project, &id)?).as_bytes(),
            )?,
            Some('i') => return carry_out(app, &mut project, (&planned, &options), user.as_mut()),
            Some(_) => {
                revise_proposal(&project, &id, None, (&options, user.as_mut()))?;
                planned = plan_change(
                    &project,
                    &Idea {
                        id: &id,
                        description: None,
                    },
                    &options,
                    user.as_mut(),
                )?;
            }
            None => break,
        }
    }

    Ok(if planned.phase == ChangePhase::Rejected {
        exit::FAILED
    } else {
        exit::SUCCESS
    }
    .into())
}

/// Asks how to continue, if there is a choice.
fn next(planned: &PlannedChange, user: &mut dyn User) -> anyhow::Result<Option<char>> {
    let view_choice = Choice {
        key: 'v',
        label: "(v)iew",
    };
    let implement = Choice {
        key: 'i',
        label: "(i)mplement",
    };

    let go_on = Choice {
        key: 'c',
        label: "(c)ontinue fixing",
    };
    let (question, choices) = match planned.phase {
        ChangePhase::Challenged => ("Ready to be implemented.", vec![implement, view_choice]),
        ChangePhase::Proposed if planned.only_minor_issues => (
            "Only minor issues remain; it can be implemented.",
            vec![implement, view_choice, go_on],
        ),
        ChangePhase::Proposed => (
            "Significant issues remain; have a look at them.",
            vec![view_choice, go_on, implement],
        ),
        _ => return Ok(None),
    };
    Ok(user
        .choose(question, &choices)?
        .map(|index| choices[index].key))
}

/// Implements the change. An unapproved change is approved first, with a reason.
fn carry_out(
    app: &App,
    project: &mut Project,
    planned: (&PlannedChange, &ChangeOptions),
    user: &mut dyn User,
) -> anyhow::Result<ExitCode> {
    let (planned, options) = planned;
    let id = &planned.change;
    if planned.phase == ChangePhase::Proposed {
        let Some(reason) = user.ask(&Question::Reason {
            change: id.as_str(),
        })?
        else {
            return Ok(exit::FAILED.into());
        };
        approve(project, id, &reason, user)?;
    }

    let implemented = implement_and_review(project, id, options, user)?;
    implement::show(app, &implemented)
}

fn print(app: &App, planned: &PlannedChange) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(planned);
    }

    app.print(format!(
        "{} {}, iteration {}\n",
        planned.change,
        planned.phase.word(),
        planned.iteration
    ))?;
    if let Some(verdict) = planned.verdict {
        let minor = if planned.only_minor_issues {
            "; only minor issues remain"
        } else {
            ""
        };
        app.note(&format!(
            "{} after {}: {}{minor}.",
            verdict.word(),
            counted(planned.challenges, "challenge"),
            planned.issues.summary()
        ));
    }

    app.note(&format!("Next: {}", planned.next));
    Ok(())
}
