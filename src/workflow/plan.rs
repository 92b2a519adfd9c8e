//! `plan`: renders the input, asks the model, repairs and validates the answer, and saves it as the
//! draft.
//!
//! The session is locked throughout. The message and the answer survive a failure at any point.

use crate::change::id::ChangeId;
use crate::git::object::CommitId;
use crate::model::prompt::ANSWERING;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading::{self, Reading};
use crate::plan::repair::Level;
use crate::plan::{self, Plan};
use crate::project::Project;
use crate::session::artifact::{self};
use crate::session::comments;
use crate::session::draft::Draft;
use crate::session::meta::{MessageOrigin, ModelUse, Status};
use crate::session::requests::Requests;
use crate::session::turn::Turn;
use crate::workflow::context::input::{Sources, write_input};
use crate::workflow::context::lists::{ContextLists, lists_of_input};
use crate::workflow::context::message::{ask_for_message, resolve_message, without_keys};
use crate::workflow::context::requests;
use crate::workflow::model::pipelines::{PlanSource, plan_source};
use crate::workflow::model::request::{ModelReply, ask_watching};
use crate::workflow::model::{agents, choose};
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{Event, Notice, User, report_drift, telling};
use crate::workflow::validation::{Beside, ValidatedPlan, ValidationInput, validate_plan};
use crate::workspace::drift::{self, Drift};
use crate::workspace::snapshot::{self, RecordedFiles};

#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// `None` prompts for it.
    pub message: Option<String>,
    /// A raw answer from elsewhere, instead of asking a model.
    pub from: Option<String>,
    /// By name or `kind:id`; `None` for the session's model, else the configured one.
    pub model: Option<String>,
    /// `None` for the configured pipeline.
    pub pipeline: Option<String>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
    pub origin: MessageOrigin,
    /// Key of the work on a change that the message describes.
    pub work: Option<String>,
    /// The answer must not change files.
    pub question: bool,
    /// `from` contains changes that an agent made.
    pub is_made: bool,
    /// Workspace commit to plan from; `None` takes a snapshot.
    pub snapshot: Option<CommitId>,
    /// The user is at the prompt of a loop.
    pub takes_commands: bool,
}

/// The text that should replace a waiting plan is not a plan.
#[derive(Debug, thiserror::Error)]
#[error("this is not a plan; the plan that is waiting was not replaced")]
pub struct NotAPlan;

#[derive(Debug, Clone)]
pub struct WaitingPlan {
    pub session: String,
    pub turn: u64,
    pub title: String,
    pub model: Option<ModelUse>,
    /// How much repair had to guess.
    pub repair: Level,
    pub diagnostics: Vec<Diagnostic>,
    /// Files that the plan changes although the model has not seen them, if nothing else is wrong.
    pub unseen: Vec<String>,
    /// If the structure is invalid.
    pub outline: Option<String>,
    pub text: String,
    /// The model's answer, if it is prose. The plan only has this message.
    pub answer: Option<String>,
    /// Difference between the user's files and the previous turn; `None` if not compared.
    pub drift: Option<Drift>,
    /// The newest snapshot of the user's files.
    pub recorded: RecordedFiles,
}

/// Asks for the message of the next turn. `None` if one waits already.
pub fn ask_next_message(project: &Project, user: &mut dyn User) -> anyhow::Result<Option<String>> {
    let (tip, draft) = project.in_progress(&project.session()?)?;
    if draft.waiting_message().is_some() {
        return Ok(None);
    }
    let question = tip.question(&project.repository)?;
    ask_for_message(&draft, &tip, question, user).map(Some)
}

/// Plans the next turn of the session in use.
pub fn plan_next_turn(
    project: &Project,
    options: &PlanOptions,
    user: &mut dyn User,
) -> anyhow::Result<WaitingPlan> {
    let session = OpenSession::current(project, "plan", user)?;
    // As in `execute FILE`, a text without a plan is probably the wrong file.
    let is_wrong = |text: &String| session.draft.is_planned() && !reading::read(text).is_plan;
    anyhow::ensure!(!options.from.as_ref().is_some_and(is_wrong), NotAPlan);
    plan_turn(session, options, user)
}

pub fn plan_turn(
    mut session: OpenSession<'_>,
    options: &PlanOptions,
    user: &mut dyn User,
) -> anyhow::Result<WaitingPlan> {
    // Fail on an unavailable model before prompting for a message.
    let (message, origin) = given_message(&session.draft, options, user).unzip();
    let origin = origin.unwrap_or(MessageOrigin::User);
    let source = source(&session, options, origin)?;
    let message = match message {
        Some(message) => message,
        None => {
            let question = session.tip.question(&session.project.repository)?;
            ask_for_message(&session.draft, &session.tip, question, user)?
        }
    };
    let message = without_keys(message, user);

    let recorded = match options.snapshot {
        Some(commit) => RecordedFiles::of(&session.project.repository, commit)?,
        None => session.record_files(&[], user)?,
    };
    let drift = report_files(&mut session, &recorded, user)?;
    let OpenSession {
        project,
        tip,
        draft,
        ..
    } = &mut session;
    let lists = lists_of_input(project, tip, draft, recorded.tree, user)?;
    let requests =
        requests::requests_but_for(session.project, &session.tip, &session.draft, &message)?;
    let waited = session.draft.is_planned().then(|| session.draft.clone());
    let archived = begin(&mut session.draft, &message, origin);
    if let (Some(waited), Some(dir), Some(text)) = (waited, archived, &options.from) {
        report_replaced(&waited, text, &dir, user);
    }
    session.draft.meta.planned_on = Some(recorded.commit);
    session.draft.meta.made = options.is_made;
    instruct(&mut session, options)?;
    session
        .draft
        .artifacts
        .insert(artifact::REQUESTS, requests.write());
    let sources = Sources {
        tree: recorded.tree,
        tip: &session.tip,
        lists: &lists,
        requests: requests.before(&session.draft.meta),
        depth: options.depth,
    };
    let (project, takes_commands) = (session.project, options.takes_commands);
    let weight = write_input(project, sources, &mut session.draft, takes_commands, user)?;

    let is_kept = source.is_some();
    let reply = match source {
        Some(source) => {
            // If the call fails, the message waits and must not go to another model.
            record_model(&session, options)?;
            ask_watching(&mut session, &recorded, source, weight, user)?
        }
        None => ModelReply {
            text: options.from.clone().unwrap_or_default(),
            now: None,
        },
    };

    let answered = Answered {
        session,
        lists: &lists,
        recorded: &recorded,
        is_kept,
    };
    Ok(WaitingPlan {
        drift: Some(drift),
        ..answered.take(reply)?
    })
}

fn given_message(
    draft: &Draft,
    options: &PlanOptions,
    user: &mut dyn User,
) -> Option<(String, MessageOrigin)> {
    resolve_message(options.message.as_deref(), options.origin, draft, user)
        // A given answer needs no message.
        .or_else(|| {
            let is_given = options.from.is_some();
            is_given.then(|| (String::new(), MessageOrigin::User))
        })
}

/// `None` if the answer is given.
fn source(
    session: &OpenSession<'_>,
    options: &PlanOptions,
    origin: MessageOrigin,
) -> anyhow::Result<Option<PlanSource>> {
    let (project, tip, model) = (session.project, &session.tip, options.model.as_deref());
    if options.from.is_some() {
        return Ok(None);
    }
    // A pipeline produces plans, not answers.
    if options.question {
        let model = choose::writer(project, tip, model)?;
        return Ok(Some(PlanSource::Model(model)));
    }
    // A message whose pipeline failed goes through the same one again.
    let draft = &session.draft;
    let is_again = options.message.is_none()
        && model.is_none()
        && origin != MessageOrigin::Validation
        && project.journal().owns_draft(&tip.session, draft);
    let again = draft.meta.pipeline.as_deref().filter(|_| is_again);
    let pipeline = options.pipeline.as_deref().or(again);
    plan_source(project, tip, model, pipeline, origin).map(Some)
}

/// The model of the first turn is the session's model.
fn record_model(session: &OpenSession<'_>, options: &PlanOptions) -> anyhow::Result<()> {
    let is_first = session.tip.number() == 0 && options.work.is_none();
    if let Some(model) = options.model.as_ref().filter(|_| is_first) {
        let journal = session.project.journal();
        journal.record_model(&session.tip.session, model)?;
    }
    Ok(())
}

/// Reports what the snapshot includes, and how the files differ from the newest turn.
fn report_files(
    session: &mut OpenSession<'_>,
    recorded: &RecordedFiles,
    user: &mut dyn User,
) -> anyhow::Result<Drift> {
    let (checkout, tip) = (session.project.checkout(), &session.tip);
    let draft = &mut session.draft;
    snapshot::report_captured(&checkout, tip, draft, recorded, &mut telling(user))?;
    let drift = drift::drift(&checkout, tip, recorded.tree)?;
    report_drift(&drift, tip.number(), user);
    Ok(drift)
}

/// A session whose model has answered.
pub struct Answered<'a, 'p> {
    pub session: OpenSession<'p>,
    pub lists: &'a ContextLists,
    pub recorded: &'a RecordedFiles,
    /// The draft was saved with the raw answer.
    pub is_kept: bool,
}

impl Answered<'_, '_> {
    /// Repairs and validates the answer, and saves it as the waiting plan.
    pub fn take(mut self, reply: ModelReply) -> anyhow::Result<WaitingPlan> {
        let ModelReply { text: reply, now } = reply;
        let OpenSession {
            project,
            tip,
            draft,
            ..
        } = &mut self.session;
        let validated = validate_plan(
            project,
            read_reply(tip, draft, &reply),
            &ValidationInput {
                tip,
                tree: self.recorded.tree,
                lists: self.lists,
                draft,
            },
            Beside::Workspace,
        )?;
        // If the answer needed no repair, the draft is already saved with it.
        let is_as_kept = self.is_kept && reply == validated.repaired.text;
        let is_as_kept = is_as_kept && draft.artifacts.text(artifact::REPLY).is_none();
        keep_plan(draft, &reply, &validated);
        if !is_as_kept {
            self.session.save_draft()?;
        }

        let OpenSession { tip, draft, .. } = self.session;
        Ok(WaitingPlan {
            session: tip.session.to_string(),
            turn: draft.meta.number,
            title: validated.plan.title.clone(),
            model: draft.meta.model,
            repair: validated.repaired.level,
            unseen: validated.unseen(),
            diagnostics: validated.simulation.diagnostics,
            outline: validated.outline,
            text: validated.repaired.text,
            answer: message_of(&validated.plan).filter(|_| validated.prose.is_some()),
            drift: None,
            recorded: now.unwrap_or_else(|| self.recorded.clone()),
        })
    }
}

/// Returns the message of a plan that is a prose answer.
pub fn message_of(plan: &Plan) -> Option<String> {
    let mut messages = plan
        .actions
        .iter()
        .filter_map(|action| action.kind.message());
    messages.next().map(str::to_owned)
}

/// Parses a reply, as an answer if the draft is a question. The work on a change needs a plan, so an
/// prose answer to it is a mistake.
pub fn read_reply(tip: &Turn, draft: &Draft, reply: &str) -> Reading {
    if draft.meta.question {
        return reading::read_answer(reply, &request_of(tip, draft));
    }
    // The correction of a plan for the work on a change does not name the work.
    let corrects_work = draft.meta.origin == MessageOrigin::Validation
        && ChangeId::of_session(&tip.session).is_some();
    match draft.meta.work.is_some() || corrects_work {
        true => reading::read(reply),
        false => reading::read_reply(reply, &request_of(tip, draft)),
    }
}

/// The request that a draft answers: of comments on lines, the first one. If the message is feedback
/// by TeDDy, the newest request, or else the title of the turn before.
fn request_of(tip: &Turn, draft: &Draft) -> String {
    let message = draft.artifacts.text_or_empty(artifact::USER_PROMPT);
    if draft.meta.origin == MessageOrigin::User {
        return comments::first_line(&message).map_or(message.clone(), str::to_owned);
    }

    let text = draft.artifacts.text_or_empty(artifact::REQUESTS);
    let newest = Requests::read(&text)
        .ok()
        .and_then(|requests| requests.requests.into_iter().next_back());
    newest.map_or_else(|| tip.title.clone(), |request| request.text)
}

/// A question has a prompt of its own. Without a new message, it stays a question.
fn instruct(session: &mut OpenSession<'_>, options: &PlanOptions) -> anyhow::Result<()> {
    let was_question = session.draft.meta.question;
    let is_question = options.question || (options.message.is_none() && was_question);
    if is_question {
        let artifacts = &mut session.draft.artifacts;
        artifacts.insert(artifact::SYSTEM_PROMPT, ANSWERING.to_owned());
    } else {
        drop_question(session)?;
    }

    let draft = &mut session.draft;
    draft.meta.question = is_question;
    draft.meta.work.clone_from(&options.work);
    agents::update_prompt(session.project, &mut draft.artifacts);
    Ok(())
}

/// Restores the agent's system prompt.
pub fn drop_question(session: &mut OpenSession<'_>) -> anyhow::Result<()> {
    let OpenSession {
        project,
        tip,
        draft,
        ..
    } = session;
    if draft.meta.question {
        let prompt = agents::standing_prompt(project, tip, &draft.meta.agent)?;
        draft.artifacts.insert(artifact::SYSTEM_PROMPT, prompt);
        draft.meta.question = false;
    }
    Ok(())
}

/// Says which plan was replaced. One with the same title was most likely corrected.
pub fn report_replaced(waited: &Draft, text: &str, dir: &str, user: &mut dyn User) {
    let title_of = |text: &str| plan::parse(text).0.title;
    let title = title_of(&waited.artifacts.text_or_empty(artifact::PLAN));
    if title != title_of(text) {
        let file = format!("{dir}{}", artifact::PLAN);
        user.report(Event::Notice(Notice::PlanReplaced { title, file }));
    }
}

fn begin(draft: &mut Draft, message: &str, origin: MessageOrigin) -> Option<String> {
    // The next answer can come from the same conversation.
    let acted = draft.meta.acted.clone();
    let archived = draft.archive_answer();
    draft.drop_answer();
    draft.meta.acted = acted;
    draft.artifacts.insert(artifact::USER_PROMPT, message);
    draft.meta.origin = origin;
    if origin == MessageOrigin::User {
        // A new request of the user starts a new series of attempts.
        draft.meta.replans = 0;
    }
    draft.begin();
    archived
}

pub fn keep_plan(draft: &mut Draft, reply: &str, validated: &ValidatedPlan) {
    if reply == validated.repaired.text {
        draft.artifacts.remove(artifact::REPLY);
    } else {
        draft.artifacts.insert(artifact::REPLY, reply);
    }

    draft
        .artifacts
        .insert(artifact::PLAN, validated.repaired.text.as_str());
    draft.meta.repair = Some(format!("{:?}", validated.repaired.level).to_lowercase());
    draft.meta.status = Status::Planned;
}
