//! Requests a plan from a model or a pipeline. Everything that arrives is saved in the draft, even
//! on failure.

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

/// A request for a plan.
pub struct PlanRequest<'a> {
    /// Newest turn.
    pub tip: &'a Turn,
    /// The draft, with input, message and system prompt.
    pub draft: &'a mut Draft,
    /// The user's files, of which an acting model gets a copy.
    pub recorded: &'a RecordedFiles,
    /// Model or pipeline.
    pub source: PlanSource,
    /// Token estimate of the input.
    pub weight: TokenEstimate,
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

/// Sends the request in the draft, and returns the complete answer.
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
    // Save before the request, so that the user's message survives any way the wait can end.
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
            // Before the answer is parsed, because it has been paid for.
            keeper.keep_answer(&text)?;
            fault::point("after-answer")?;
            Ok(text)
        }
        Err(failure) => {
            let error = keep(project, (tip, draft), failure, user)?;
            // An error outside the model has a hint of its own.
            Err(record.trouble.unwrap_or(error))
        }
    }
}

struct SharedMeans<'a> {
    budget: Rc<CostBudget>,
    weight: TokenEstimate,
    room: &'a dyn Room,
}

impl<'a> SharedMeans<'a> {
    fn meter(&self, chosen: PricedModel) -> MeteredModel<'a> {
        MeteredModel {
            chosen,
            room: Some(self.room),
            budget: Rc::clone(&self.budget),
            weight: self.weight,
        }
    }
}

struct Keeper<'a> {
    project: &'a Project,
    tip: &'a Turn,
    draft: &'a mut Draft,
}

impl Keeper<'_> {
    fn save(&mut self) -> anyhow::Result<()> {
        self.project.store().save_draft(self.tip, self.draft)
    }

    /// Saved as a plan; `execute` repairs and validates it.
    fn keep_answer(&mut self, text: &str) -> anyhow::Result<()> {
        self.draft.artifacts.put(artifact::PLAN, text);
        self.draft.meta.status = Status::Planned;
        self.save()
    }
}

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

/// Runs a pipeline. The artifacts of each step are saved as they arrive.
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

                // The last answer is saved as the plan by the caller. An error here will show up
                // again there.
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

/// Announces a request with its estimated cost.
pub fn announce(model: &MeteredModel<'_>, request: &ModelRequest, user: &mut dyn User) {
    let (tokens, estimate) = (model.weight.of(request), model.estimate(request));
    user.tell(Event::Asking {
        model: model.name(),
        tokens,
        estimate,
    });
}

/// Forwards remarks and the answer so far. An empty text only means that the model is still
/// working.
pub fn hear(notes: &[Notes], text: &str, user: &mut dyn User) {
    for note in notes.iter().flat_map(|notes| notes.take()) {
        user.tell(Event::Notice(Notice::ModelRemark(note)));
    }
    user.tell(Event::Received { text });
}

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

/// Reports a missing price, if that makes the cost unknown.
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
