//! Asking for a plan: one model, or a pipeline's steps. Whatever happens, what arrived is in the
//! draft.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::config::settings::Price;
use crate::host::fault;
use crate::model::pipeline::run::{self, PipelineEvent as StepEvent, folder, run};
use crate::model::{Finish, Model, ModelAnswer, ModelError, ModelRequest, TokenUsage, price};
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{self, ModelUse, SCHEMA, Status, StepMeta};
use crate::session::turn::Turn;
use crate::workflow::act::{ActingRoom, SharedUser};
use crate::workflow::model::budget;
use crate::workflow::model::budget::{CostBudget, MeteredModel, Room, TokenEstimate};
use crate::workflow::model::choose::{Notes, PricedModel};
use crate::workflow::model::pipelines::PreparedPipeline;
use crate::workflow::model::source::PlanSource;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};
use crate::workspace::snapshot::RecordedFiles;

/// What is asked, and where what comes of it is kept.
pub struct PlanRequest<'a> {
    /// The newest turn.
    pub tip: &'a Turn,
    /// The turn in progress, with its input, message and system prompt.
    pub draft: &'a mut Draft,
    /// The user's files, which a model that edits files gets a copy of.
    pub recorded: &'a RecordedFiles,
    /// Who is asked.
    pub source: PlanSource,
    /// How much the input is.
    pub weight: TokenEstimate,
}

/// Why there is no answer.
struct RequestFailure {
    /// The step of a pipeline that failed.
    step: Option<String>,
    /// What went wrong.
    error: ModelError,
}

impl From<ModelError> for RequestFailure {
    fn from(error: ModelError) -> RequestFailure {
        RequestFailure { step: None, error }
    }
}

/// Asks with what the draft has recorded, and returns the whole answer.
///
/// # Errors
/// Where there is none; the draft is saved with what arrived, and says why.
pub fn ask(
    project: &Project,
    asking: PlanRequest<'_>,
    user: &mut dyn User,
) -> anyhow::Result<String> {
    let PlanRequest {
        tip,
        draft,
        recorded,
        source,
        weight,
    } = asking;
    // Saved before the model is asked: whatever ends the wait, no word of the user's is lost.
    project.store().save_draft(tip, draft)?;
    let text = |name: &str| draft.artifacts.text_or_empty(name);
    let (system, input, message) = (
        text(artifact::SYSTEM_PROMPT),
        text(artifact::INPUT),
        text(artifact::USER_PROMPT),
    );
    let request = ModelRequest {
        system,
        input,
        message,
        max_tokens: None,
    };

    let budget = CostBudget::new(
        budget::spent(project, tip, draft)?,
        project.settings.limits.cost,
    );
    let mut keeper = Keeper {
        project,
        tip,
        draft,
    };

    let shared: SharedUser<'_> = RefCell::new(user);
    let room = ActingRoom {
        project,
        tip,
        recorded,
        user: &shared,
        record: RefCell::default(),
    };
    let asked = SharedMeans {
        budget,
        weight,
        room: &room,
    };
    let answer = match source {
        PlanSource::Model(chosen) => {
            ask_model(keeper.draft, &asked.meter(chosen), (&request, &shared))
        }
        PlanSource::Pipeline(prepared) => {
            ask_steps(&mut keeper, prepared, &asked, (&request, &shared))
        }
    };

    let mut record = room.record.into_inner();
    let user = shared.into_inner();
    record.keep_in(keeper.draft);
    match answer {
        Ok(text) => {
            keeper.keep_answer(&text)?;
            fault::point("after-answer")?;
            Ok(text)
        }
        Err(failure) => {
            let error = keep(project, (tip, draft), failure, user)?;
            // What went wrong around the model has a remedy of its own.
            Err(record.trouble.unwrap_or(error))
        }
    }
}

/// What all that is asked for one turn shares.
struct SharedMeans<'a> {
    /// What it is paid from.
    budget: Rc<CostBudget>,
    /// How requests are weighed.
    weight: TokenEstimate,
    /// Where a model works that edits files itself.
    room: &'a dyn Room,
}

impl<'a> SharedMeans<'a> {
    /// Returns a model that is asked as long as the limit allows it.
    fn meter(&self, chosen: PricedModel) -> MeteredModel<'a> {
        MeteredModel {
            chosen,
            room: Some(self.room),
            budget: Rc::clone(&self.budget),
            weight: self.weight,
        }
    }
}

/// The turn in progress, and where it is saved.
struct Keeper<'a> {
    /// The project.
    project: &'a Project,
    /// The newest turn.
    tip: &'a Turn,
    /// The turn in progress.
    draft: &'a mut Draft,
}

impl Keeper<'_> {
    /// Saves the turn in progress.
    fn save(&mut self) -> anyhow::Result<()> {
        self.project.store().save_draft(self.tip, self.draft)
    }

    /// Saves a whole answer before anything is done with it: it is paid for. As it is it waits as
    /// a plan, which whoever executes it repairs and judges.
    fn keep_answer(&mut self, text: &str) -> anyhow::Result<()> {
        self.draft.artifacts.put(artifact::PLAN, text);
        self.draft.meta.status = Status::Planned;
        self.save()
    }
}

/// Asks one model.
fn ask_model(
    draft: &mut Draft,
    model: &MeteredModel<'_>,
    (request, user): (&ModelRequest, &SharedUser<'_>),
) -> Result<String, RequestFailure> {
    let notes = [Rc::clone(&model.chosen.notes)];
    announce(model, request, *user.borrow_mut());
    let answer = model.answer(request, &mut |text| hear(&notes, text, *user.borrow_mut()));
    hear(&notes, "", *user.borrow_mut());
    user.borrow_mut().tell(Event::Answered);
    let answer = answer?;

    note_use(draft, (model, &answer), *user.borrow_mut());
    Ok(whole(answer)?)
}

/// Asks the models of a pipeline step by step; each step's artifacts are put into the draft as it
/// comes.
fn ask_steps(
    keeper: &mut Keeper<'_>,
    prepared: PreparedPipeline,
    asked: &SharedMeans<'_>,
    (request, user): (&ModelRequest, &SharedUser<'_>),
) -> Result<String, RequestFailure> {
    let PreparedPipeline {
        name,
        pipeline,
        models,
    } = prepared;
    keeper.draft.meta.pipeline = Some(name);
    let notes: Vec<Notes> = models
        .values()
        .map(|chosen| Rc::clone(&chosen.notes))
        .collect();
    let models: HashMap<_, _> = models
        .into_iter()
        .map(|(name, chosen)| (name, Rc::new(asked.meter(chosen))))
        .collect();
    let model = |name: Option<&str>| Rc::clone(&models[&name.map(str::to_owned)]);
    let count = pipeline.steps.len();
    let mut place = 0;
    let ran = run(
        &pipeline,
        request,
        &mut |name| Ok(Box::new(model(name))),
        &mut |event| match event {
            StepEvent::Started {
                position,
                step,
                request,
            } => {
                place = position;
                let user = &mut **user.borrow_mut();
                user.tell(Event::Notice(Notice::StepStarted {
                    number: position + 1,
                    of: count,
                    name: step.name.clone(),
                }));
                let input = format!("{}/input.md", folder(position, &step.name));
                keeper.draft.artifacts.put(&input, request.whole_text());

                announce(&model(step.model.as_deref()), request, user);
            }
            StepEvent::Received { text } => hear(&notes, text, *user.borrow_mut()),
            StepEvent::Finished(ran) => {
                let user = &mut **user.borrow_mut();
                user.tell(Event::Answered);
                let model = model(pipeline.steps[place].model.as_deref());
                keep_step(keeper.draft, place, ran, used(&model, &ran.answer));
                note_use(keeper.draft, (&model, &ran.answer), user);

                // The last one's answer is saved as the plan; what cannot be saved now can fail
                // to be saved then.
                if place + 1 < count {
                    let _ = keeper.save();
                }
            }
        },
    );

    let user = &mut **user.borrow_mut();
    hear(&notes, "", user);
    match ran {
        Ok(mut ran) => Ok(whole(ran.pop().expect("a pipeline has a step").answer)?),
        Err(stopped) => {
            user.tell(Event::Answered);
            Err(RequestFailure {
                step: Some(stopped.step),
                error: *stopped.error,
            })
        }
    }
}

/// Puts what a step said into the draft.
fn keep_step(draft: &mut Draft, position: usize, ran: &run::StepRun, model: ModelUse) {
    let folder = folder(position, &ran.name);
    let meta = StepMeta {
        schema: SCHEMA,
        step: ran.name.clone(),
        model,
    };
    draft
        .artifacts
        .put(&format!("{folder}/output.md"), ran.answer.text.as_str());

    draft
        .artifacts
        .put(&format!("{folder}/{}", artifact::META), meta::write(&meta));
}

/// Says who is asked, and what it will cost.
pub fn announce(model: &MeteredModel<'_>, request: &ModelRequest, user: &mut dyn User) {
    let (tokens, estimate) = (model.weight.of(request), model.estimate(request));
    user.tell(Event::Asking {
        model: model.name(),
        tokens,
        estimate,
    });
}

/// Hands on what models say besides their answer, and the answer so far; an empty one says that
/// nothing came.
pub fn hear(notes: &[Notes], text: &str, user: &mut dyn User) {
    for note in notes.iter().flat_map(|notes| notes.take()) {
        user.tell(Event::Notice(Notice::ModelRemark(note)));
    }
    user.tell(Event::Received { text });
}

/// Returns the text of an answer that its model was done with.
fn whole(answer: ModelAnswer) -> Result<String, ModelError> {
    match answer.finish {
        Finish::Stop => Ok(answer.text),
        Finish::Length => Err(ModelError::Truncated {
            partial: answer.text,
        }),
        Finish::Other(reason) => Err(ModelError::Ended {
            reason,
            partial: answer.text,
        }),
    }
}

/// Returns what an answer took.
fn used(model: &MeteredModel<'_>, answer: &ModelAnswer) -> ModelUse {
    let TokenUsage {
        input,
        output,
        cached,
        cache_written,
    } = answer.usage;
    ModelUse {
        asked: model.name().to_owned(),
        answered: answer.model.clone(),
        tokens_in: input,
        tokens_out: output,
        tokens_cached: cached,
        tokens_cache_written: cache_written,
        cost: answer
            .cost
            .or_else(|| price::cost(model.chosen.price.as_ref(), answer.usage).ok()),
    }
}

/// Notes what an answer took, besides what was noted before.
fn note_use(
    draft: &mut Draft,
    (model, answer): (&MeteredModel<'_>, &ModelAnswer),
    user: &mut dyn User,
) {
    let price = model.chosen.price.as_ref();
    if answer.cost.is_some() || price.is_some() && answer.usage.is_known() {
        draft.meta.spent = Some(draft.meta.spent.unwrap_or(0.0) + model.charge(answer));
    }

    if answer.cost.is_none() {
        tell_unknown(model.name(), price, answer.usage, user);
    }
    let used = used(model, answer);
    draft.meta.model = Some(match draft.meta.model.take() {
        Some(before) => before.then(used),
        None => used,
    });
}

/// Says which price is missing, where that is why the cost is unknown.
pub fn tell_unknown(model: &str, price: Option<&Price>, usage: TokenUsage, user: &mut dyn User) {
    if let Some(setting) = price::cost(price, usage)
        .err()
        .and_then(price::Unknown::setting)
    {
        user.tell(Event::Notice(Notice::PriceMissing {
            model: model.to_owned(),
            setting,
        }));
    }
}

/// Keeps what arrived of an answer that failed, and returns why it did.
fn keep(
    project: &Project,
    (tip, draft): (&Turn, &mut Draft),
    failure: RequestFailure,
    user: &mut dyn User,
) -> anyhow::Result<anyhow::Error> {
    let RequestFailure { step, error } = failure;
    if let Some(partial) = error.partial() {
        draft.artifacts.put(artifact::REPLY, partial);
        user.tell(Event::Notice(Notice::PartialAnswerKept(
            tip.session.clone(),
        )));
    }

    let during = step.map(|step| format!("step `{step}`"));
    draft.meta.failure = Some(
        during
            .iter()
            .cloned()
            .chain([error.to_string()])
            .collect::<Vec<_>>()
            .join(": "),
    );
    project.store().save_draft(tip, draft)?;
    let error = anyhow::Error::from(error);

    Ok(match during {
        Some(during) => error.context(during),
        None => error,
    })
}
