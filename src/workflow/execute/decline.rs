//! A plan that the user does not want: recorded with their words, and planned again with them.

use super::{Asked, Case, Executed, Wish, execute, record};
use crate::host::interrupt;
use crate::session::artifact;
use crate::workflow::context::message::without_keys;
use crate::workflow::plan::{self, plan};
use crate::workflow::project::Project;
use crate::workflow::user::{Event, Question, User};

/// Executes, and plans again where the user declined the plan and said what shall be done instead.
///
/// # Errors
/// As for [`execute`]. Where no other plan can be made, that is a warning: the turn is recorded,
/// and the words wait for the next one.
pub fn execute_or_plan(
    project: &mut Project,
    wish: &Wish,
    user: &mut dyn User,
) -> anyhow::Result<Executed> {
    let mut executed = execute(project, wish, user)?;
    if executed.instead.is_none() {
        return Ok(executed);
    }
    // Without a message of its own it takes the one that waits.
    let wanted = plan::Wish {
        model: wish.model.clone(),
        ..plan::Wish::default()
    };
    match plan(project, &wanted, user) {
        Ok(planned) => executed.replanned = Some(planned),
        Err(error) => user.tell(Event::Warning(&format!(
            "no other plan was made: {error:#}; your message is kept for `teddy plan`"
        ))),
    }
    Ok(executed)
}

/// Records that the user did not want the plan; what they want instead waits as the next turn's
/// message.
pub(super) fn decline(
    project: &Project,
    case: Case<'_>,
    words: Option<String>,
    user: &mut dyn User,
) -> anyhow::Result<Executed> {
    let words = match words {
        Some(words) => Some(words),
        None => user.ask(&Question::Instead {
            title: &case.judged.plan.title,
        })?,
    };
    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before the plan was declined; it is still waiting"
    );
    let words = words.map(|words| without_keys(words, user));
    let session = case.tip.session.clone();
    let mut executed =
        record::record_declined(project, case, words.as_deref().unwrap_or_default(), user)?;
    executed.asked = words.is_none().then_some(Asked::Left);
    executed.instead = words.filter(|words| !words.trim().is_empty());
    if let Some(words) = &executed.instead {
        let tip = project.store().tip(&session)?;
        let mut draft = project.store().draft(&tip)?;
        draft.artifacts.put(artifact::USER_PROMPT, words.as_str());
        project.store().save_draft(&tip, &mut draft)?;
    }
    Ok(executed)
}
