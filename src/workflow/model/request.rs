//! Requests a plan from a model or a pipeline.
//!
//! Everything that arrives is saved in the draft before it is parsed, even on failure: it has been
//! paid for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::config::settings::Price;
use crate::git::diff;
use crate::git::object::TreeId;
use crate::host::fault;
use crate::model::pipeline::{self, PipelineEvent as StepEvent, run, step_dir};
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest, TokenUsage, price};
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{self, Acted, ModelUse, SCHEMA, Status, StepMeta};
use crate::text::path::lossy;
use crate::workflow::act::{SharedUser, WorktreeEnv};
use crate::workflow::model::budget::{self, ActingEnv, CostBudget, MeteredModel, TokenEstimate};
use crate::workflow::model::choose::{Notes, OpenedModel, PricedModel};
use crate::workflow::model::pipelines::{PlanSource, PreparedPipeline};
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{Event, Notice, User};
use crate::workspace::snapshot::RecordedFiles;

pub struct ModelReply {
    /// Complete.
    pub text: String,
    /// The user's files after a program answered, because it could change them.
    pub now: Option<RecordedFiles>,
}

struct RequestFailure {
    step: Option<String>,
    error: ModelError,
}

impl From<ModelError> for RequestFailure {
    fn from(error: ModelError) -> RequestFailure {
        RequestFailure { step: None, error }
    }
}

/// Returns the complete answer.
fn ask(
    session: &mut OpenSession<'_>,
    recorded: &RecordedFiles,
    source: PlanSource,
    weight: TokenEstimate,
    user: &mut dyn User,
) -> anyhow::Result<String> {
    let discarded = session.draft.meta.acted.take();
    if is_acting(&source) {
        // If TeDDy is killed meanwhile, what the agent remembers is unknown.
        session.draft.meta.acted = Some(Acted::default());
    }
    // Save before the request, so that the user's message survives any way the wait can end.
    session.save_draft()?;
    let (project, tip) = (session.project, session.tip.clone());
    let text = |name: &str| session.draft.artifacts.text_or_empty(name);
    let request = ModelRequest {
        system: text(artifact::SYSTEM_PROMPT),
        input: text(artifact::INPUT),
        message: text(artifact::USER_PROMPT),
        max_tokens: None,
    };

    let budget = CostBudget::new(
        budget::session_spending(project, &tip, &session.draft)?,
        project.settings.limits.cost,
    );
    let shared: SharedUser<'_> = RefCell::new(user);
    let env = WorktreeEnv {
        project,
        tip: &tip,
        recorded,
        user: &shared,
        discarded,
        record: RefCell::default(),
    };
    let means = SharedMeans {
        budget,
        weight,
        env: &env,
    };
    let answer = match source {
        PlanSource::Model(chosen) => {
            ask_model(&mut session.draft, &means.meter(chosen), &request, &shared)
        }
        PlanSource::Pipeline(prepared) => ask_steps(session, prepared, &means, &request, &shared),
    };

    // Also after a failure: the transcript and the cost stay with the draft.
    let mut record = env.record.into_inner();
    record.acted = record.acted.or(env.discarded);
    let user = shared.into_inner();
    record.keep_in(&mut session.draft);
    match answer {
        Ok(text) => {
            // Before the answer is parsed, because it has been paid for. `execute` repairs and
            // validates it.
            session
                .draft
                .artifacts
                .insert(artifact::PLAN, text.as_str());
            session.draft.meta.status = Status::Planned;
            session.save_draft()?;
            fault::point("after-answer")?;
            Ok(text)
        }
        Err(failure) => {
            let error = keep(session, failure, user)?;
            // An error outside the model has a hint of its own.
            Err(record.trouble.unwrap_or(error))
        }
    }
}

struct SharedMeans<'a> {
    budget: Rc<CostBudget>,
    weight: TokenEstimate,
    env: &'a dyn ActingEnv,
}

impl<'a> SharedMeans<'a> {
    fn meter(&self, chosen: PricedModel) -> MeteredModel<'a> {
        MeteredModel {
            chosen,
            env: Some(self.env),
            budget: Rc::clone(&self.budget),
            weight: self.weight,
        }
    }
}

fn ask_model(
    draft: &mut Draft,
    model: &MeteredModel<'_>,
    request: &ModelRequest,
    user: &SharedUser<'_>,
) -> Result<String, RequestFailure> {
    let answer = ask_one(model, request, user)?;
    let sent = model.weight.of(request);
    note_use(draft, model, &answer, sent, *user.borrow_mut());
    Ok(answer.into_complete()?)
}

/// Shows the request and what the model remarks.
pub fn ask_one(
    model: &MeteredModel<'_>,
    request: &ModelRequest,
    user: &SharedUser<'_>,
) -> Result<ModelAnswer, ModelError> {
    let notes = [Rc::clone(&model.chosen.notes)];
    announce(model, request, *user.borrow_mut());
    let answer = model.answer(request, &mut |text| {
        report_progress(&notes, text, *user.borrow_mut())
    });
    report_progress(&notes, "", *user.borrow_mut());
    user.borrow_mut().report(Event::Answered {
        failed: !answer.as_ref().is_ok_and(ModelAnswer::is_complete),
    });
    answer
}

/// Smaller inputs fit any context window.
const MIN_CUT: usize = 4_000;

/// Returns the tokens that a server read of an input, if it read so few that it must have cut the
/// input. Tokenizers differ by less than that.
pub fn read_of_cut_input(sent: usize, usage: TokenUsage) -> Option<u64> {
    let read = usage.input + usage.cached + usage.cache_written;
    let is_cut = read > 0 && sent >= MIN_CUT && read * 5 < sent as u64 * 2;
    is_cut.then_some(read)
}

/// Runs a pipeline. The artifacts of each step are saved as they arrive.
fn ask_steps(
    session: &mut OpenSession<'_>,
    prepared: PreparedPipeline,
    means: &SharedMeans<'_>,
    request: &ModelRequest,
    user: &SharedUser<'_>,
) -> Result<String, RequestFailure> {
    let PreparedPipeline {
        name,
        pipeline,
        models,
    } = prepared;
    session.draft.meta.pipeline = Some(name);
    let notes: Vec<Notes> = models
        .values()
        .map(|chosen| Rc::clone(&chosen.notes))
        .collect();
    let models: HashMap<_, _> = models
        .into_iter()
        .map(|(name, chosen)| (name, means.meter(chosen)))
        .collect();
    let count = pipeline.steps.len();
    let (mut current_step, mut sent) = (0, 0);
    let ran = run(&pipeline, request, &models, &mut |event| match event {
        StepEvent::Started {
            position,
            step,
            request,
        } => {
            current_step = position;
            let model = &models[&step.model];
            sent = model.weight.of(request);
            let user = &mut **user.borrow_mut();
            user.report(Event::Notice(Notice::StepStarted {
                number: position + 1,
                of: count,
                name: step.name.clone(),
            }));
            let input = format!("{}/input.md", step_dir(position, &step.name));
            let artifacts = &mut session.draft.artifacts;
            artifacts.insert(&input, request.full_text());

            announce(model, request, user);
        }
        StepEvent::Received { text } => report_progress(&notes, text, *user.borrow_mut()),
        StepEvent::Finished(ran) => {
            let user = &mut **user.borrow_mut();
            user.report(Event::Answered { failed: false });
            let model = &models[&pipeline.steps[current_step].model];
            let draft = &mut session.draft;
            keep_step(draft, current_step, ran, used(model, &ran.answer));
            note_use(draft, model, &ran.answer, sent, user);

            // The last answer is saved as the plan by the caller. An error here will show up
            // again there.
            if current_step + 1 < count {
                let _ = session.save_draft();
            }
        }
    });

    let user = &mut **user.borrow_mut();
    report_progress(&notes, "", user);
    match ran {
        Ok(mut ran) => {
            let last = ran.pop().expect("a pipeline has a step");
            last.answer.into_complete().map_err(|error| RequestFailure {
                step: Some(last.name),
                error,
            })
        }
        Err(stopped) => {
            user.report(Event::Answered { failed: true });
            Err(RequestFailure {
                step: Some(stopped.step),
                error: *stopped.error,
            })
        }
    }
}

fn keep_step(draft: &mut Draft, position: usize, ran: &pipeline::StepRun, model: ModelUse) {
    let dir = step_dir(position, &ran.name);
    let meta = StepMeta {
        schema: SCHEMA,
        step: ran.name.clone(),
        model,
    };
    draft
        .artifacts
        .insert(&format!("{dir}/output.md"), ran.answer.text.as_str());

    draft
        .artifacts
        .insert(&format!("{dir}/{}", artifact::META), meta::write(&meta));
}

fn announce(model: &MeteredModel<'_>, request: &ModelRequest, user: &mut dyn User) {
    let (tokens, estimate) = (model.weight.of(request), model.estimate(request));
    user.report(Event::Asking {
        model: &model.chosen.name,
        tokens,
        estimate,
    });
}

/// An empty text only means that the model is still working.
fn report_progress(notes: &[Notes], text: &str, user: &mut dyn User) {
    for note in notes.iter().flat_map(|notes| notes.take()) {
        user.report(Event::Notice(Notice::ModelRemark(note)));
    }
    user.report(Event::Received { text });
}

fn used(model: &MeteredModel<'_>, answer: &ModelAnswer) -> ModelUse {
    let usage = answer.usage;
    let known = |tokens: u64| usage.is_known().then_some(tokens);
    ModelUse {
        asked: model.chosen.name.clone(),
        answered: answer.model.clone(),
        tokens_in: known(usage.input),
        tokens_out: known(usage.output),
        tokens_cached: usage.cached,
        tokens_cache_written: usage.cache_written,
        cost: answer
            .cost
            .or_else(|| price::cost(model.chosen.price.as_ref(), answer.usage).ok()),
    }
}

fn note_use(
    draft: &mut Draft,
    model: &MeteredModel<'_>,
    answer: &ModelAnswer,
    sent: usize,
    user: &mut dyn User,
) {
    let is_writer = matches!(model.chosen.model, OpenedModel::Writes(_));
    if let Some(read) = read_of_cut_input(sent, answer.usage).filter(|_| is_writer) {
        user.report(Event::Notice(Notice::InputCut { sent, read }));
    }
    let price = model.chosen.price.as_ref();
    if answer.cost.is_some() || price.is_some() && answer.usage.is_known() {
        draft.meta.spent = Some(draft.meta.spent.unwrap_or(0.0) + model.charge(answer));
    }

    if answer.cost.is_none() {
        report_unknown(&model.chosen.name, price, answer.usage, user);
    }
    let used = used(model, answer);
    draft.meta.model = Some(match draft.meta.model.take() {
        Some(before) => before.then(used),
        None => used,
    });
}

/// If that makes the cost unknown.
pub fn report_unknown(model: &str, price: Option<&Price>, usage: TokenUsage, user: &mut dyn User) {
    if let Some(setting) = price::cost(price, usage)
        .err()
        .and_then(price::Unknown::setting)
    {
        user.report(Event::Notice(Notice::PriceMissing {
            model: model.to_owned(),
            setting,
        }));
    }
}

fn keep(
    session: &mut OpenSession<'_>,
    failure: RequestFailure,
    user: &mut dyn User,
) -> anyhow::Result<anyhow::Error> {
    let RequestFailure { step, error } = failure;
    if let Some(partial) = error.partial() {
        session.draft.artifacts.insert(artifact::REPLY, partial);
        let name = session.name().clone();
        user.report(Event::Notice(Notice::PartialAnswerKept(name)));
    }

    let during = step.map(|step| format!("step `{step}`"));
    session.draft.meta.failure = Some(match &during {
        Some(during) => format!("{during}: {error}"),
        None => error.to_string(),
    });
    session.save_draft()?;
    let error = anyhow::Error::from(error);

    Ok(match during {
        Some(during) => error.context(during),
        None => error,
    })
}

// Reports if the user's files changed while a program was asked for a plan. Such a program can do
// more than answer.

/// The draft of the session has input, message and system prompt. An acting model gets a copy of the
/// recorded files.
pub fn ask_watching(
    session: &mut OpenSession<'_>,
    recorded: &RecordedFiles,
    source: PlanSource,
    weight: TokenEstimate,
    user: &mut dyn User,
) -> anyhow::Result<ModelReply> {
    let program = asked_program(&source);
    let answer = ask(session, recorded, source, weight, user);
    // If the snapshot fails, the next command that takes one reports why.
    let now = program.and_then(|model| {
        let now = session.record_files(&[], user).ok()?;
        let paths = changed_paths(session.project, recorded.tree, now.tree).unwrap_or_default();
        if !paths.is_empty() {
            user.report(Event::Notice(Notice::FilesTouched { model, paths }));
        }
        Some(now)
    });

    Ok(ModelReply { text: answer?, now })
}

fn is_acting(source: &PlanSource) -> bool {
    let acts = |chosen: &PricedModel| matches!(chosen.model, OpenedModel::Acts(_));
    match source {
        PlanSource::Model(chosen) => acts(chosen),
        PlanSource::Pipeline(prepared) => prepared.models.values().any(acts),
    }
}

fn asked_program(source: &PlanSource) -> Option<String> {
    match source {
        PlanSource::Model(model) => model.is_program.then(|| model.name.clone()),
        PlanSource::Pipeline(pipeline) => {
            let mut programs = pipeline.models.values().filter(|model| model.is_program);
            programs.next().map(|model| model.name.clone())
        }
    }
}

fn changed_paths(project: &Project, before: TreeId, now: TreeId) -> anyhow::Result<Vec<String>> {
    let changes = diff::changes(&project.repository, before, now)?;
    Ok(changes.iter().map(|change| lossy(&change.path)).collect())
}
