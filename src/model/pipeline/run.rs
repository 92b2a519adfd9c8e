//! Runs a pipeline step by step. Stops at the first failure.

use std::collections::HashMap;

use super::{Pipeline, PipelineStep, StepInput, placeholders, substitute};
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::text::fence::fence_for;

/// A completed step. Stored as artifacts of the turn.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRun {
    /// The step's name.
    pub name: String,
    /// The request sent to the model.
    pub request: ModelRequest,
    /// The model's answer.
    pub answer: ModelAnswer,
}

/// A pipeline that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    /// The steps completed before the failure (ST12).
    pub ran: Vec<StepRun>,
    /// Name of the failed step.
    pub step: String,
    /// Cause of the failure.
    pub error: Box<ModelError>,
}

/// Progress of a pipeline.
pub enum PipelineEvent<'a> {
    /// A step is about to be sent.
    Started {
        /// Index of the step.
        position: usize,
        /// The step.
        step: &'a PipelineStep,
        /// The request about to be sent.
        request: &'a ModelRequest,
    },
    /// More of the answer has arrived.
    Received {
        /// The answer so far.
        text: &'a str,
    },
    /// The step is complete.
    Finished(&'a StepRun),
}

/// Directory for a step's artifacts, such as `steps/01-analysis` for position 0 (ST13).
pub fn step_dir(position: usize, name: &str) -> String {
    format!("steps/{:02}-{name}", position + 1)
}

/// Opens a model by name, or the turn's model for `None`.
pub type OpenModel<'a> = dyn FnMut(Option<&str>) -> Result<Box<dyn Model + 'a>, ModelError> + 'a;

/// Runs all steps. Opens every model before sending the first request (ST11).
pub fn run(
    pipeline: &Pipeline,
    turn: &ModelRequest,
    open: &mut OpenModel<'_>,
    watch: &mut dyn FnMut(PipelineEvent<'_>),
) -> Result<Vec<StepRun>, Stopped> {
    let models = open_models(pipeline, open)?;
    let mut ran: Vec<StepRun> = Vec::new();
    for (position, step) in pipeline.steps.iter().enumerate() {
        let request = step_request(step, turn, &ran);
        watch(PipelineEvent::Started {
            position,
            step,
            request: &request,
        });
        let model = models
            .get(&step.model)
            .expect("each step's model was opened");
        let answer = model.answer(&request, &mut |text| {
            watch(PipelineEvent::Received { text })
        });

        let last = position + 1 == pipeline.steps.len();
        let answer = answer.and_then(|answer| {
            // The caller judges the last answer, even if it is truncated.
            if last || answer.is_complete() {
                Ok(answer)
            } else {
                Err(ModelError::Truncated {
                    partial: answer.text,
                })
            }
        });

        match answer {
            Ok(answer) => ran.push(StepRun {
                name: step.name.clone(),
                request,
                answer,
            }),
            Err(error) => {
                return Err(Stopped {
                    ran,
                    step: step.name.clone(),
                    error: Box::new(error),
                });
            }
        }

        ran.last()
            .into_iter()
            .for_each(|ran| watch(PipelineEvent::Finished(ran)));
    }

    Ok(ran)
}

fn open_models<'a>(
    pipeline: &Pipeline,
    open: &mut OpenModel<'a>,
) -> Result<HashMap<Option<String>, Box<dyn Model + 'a>>, Stopped> {
    let mut models = HashMap::new();
    for step in &pipeline.steps {
        // Once per model, not per step: a replay has to continue with its next answer.
        if !models.contains_key(&step.model) {
            let model = open(step.model.as_deref()).map_err(|error| Stopped {
                ran: Vec::new(),
                step: step.name.clone(),
                error: Box::new(error),
            })?;
            models.insert(step.model.clone(), model);
        }
    }

    Ok(models)
}

/// Builds a step's request. Inputs that the prompt doesn't mention go to their usual places (ST9).
fn step_request(step: &PipelineStep, turn: &ModelRequest, ran: &[StepRun]) -> ModelRequest {
    let value = |name: &str| match StepInput::from_name(name) {
        StepInput::System => Some(turn.system.as_str()),
        StepInput::Input => Some(turn.input.as_str()),
        StepInput::Message => Some(turn.message.as_str()),
        StepInput::Step(name) => ran
            .iter()
            .find(|ran| ran.name == name)
            .map(|ran| ran.answer.text.as_str()),
    };
    let mut request = ModelRequest {
        message: substitute(&step.prompt, value).trim_end().to_owned(),
        max_tokens: turn.max_tokens,
        ..ModelRequest::default()
    };

    for input in &step.inputs {
        if placeholders(&step.prompt).any(|placeholder| placeholder.name == Some(input.name())) {
            continue;
        }

        let text = value(input.name()).unwrap_or_default();
        match input {
            StepInput::System => text.clone_into(&mut request.system),
            StepInput::Input => text.clone_into(&mut request.input),
            StepInput::Message => request
                .message
                .push_str(&fenced_section("The user's message", text)),
            StepInput::Step(name) => request
                .message
                .push_str(&fenced_section(&format!("Output of step `{name}`"), text)),
        }
    }

    request
}

/// Formats a text as a fenced section. The fence is longer than any in the text.
fn fenced_section(heading: &str, text: &str) -> String {
    let fence = fence_for(text, 4);
    format!("\n\n## {heading}\n\n{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::parse::{KnownNames, parse};
    use super::*;
    use crate::model::replay::Replay;
    use crate::model::{Finish, TokenUsage};

    const THREE: &str = "steps:\n- {name: analysis, prompt: 'Analyse.'}\n- {name: decision, prompt: 'Decide on: {{analysis}}', inputs: [analysis]}\n- {name: plan, prompt: 'Plan.', inputs: [system, input, message, decision]}\n";

    struct Cut;

    impl Model for Cut {
        fn name(&self) -> &str {
            "cut"
        }

        fn answer(
            &self,
            _: &ModelRequest,
            _: &mut dyn FnMut(&str),
        ) -> Result<ModelAnswer, ModelError> {
            Ok(ModelAnswer {
                text: "half".into(),
                model: "cut".into(),
                usage: TokenUsage::default(),
                cost: None,
                finish: Finish::Length,
            })
        }
    }

    fn run_logged(
        yaml: &str,
        open: &mut OpenModel<'_>,
    ) -> (Result<Vec<StepRun>, Stopped>, Vec<String>) {
        let names = KnownNames {
            file: &|_| Err(String::new()),
            model: &|_| Ok(()),
        };
        let turn = ModelRequest {
            system: "SYS".into(),
            input: "IN".into(),
            message: "MSG".into(),
            max_tokens: None,
        };
        let mut log = Vec::new();
        let result = run(
            &parse(yaml, &names).unwrap(),
            &turn,
            open,
            &mut |event| match event {
                PipelineEvent::Started { position, step, .. } => {
                    log.push(format!("{position} {}", step.name))
                }
                PipelineEvent::Received { text } => log.push(format!("< {text}")),
                PipelineEvent::Finished(ran) => log.push(format!("{} done", ran.name)),
            },
        );
        (result, log)
    }

    fn replay(texts: &[&str]) -> Box<dyn Model> {
        Box::new(Replay::from_texts(
            texts.iter().map(|text| (*text).to_owned()).collect(),
        ))
    }

    #[test]
    fn st9_what_a_prompt_does_not_name_stands_in_its_usual_place() {
        let (ran, _) = run_logged(THREE, &mut |_| Ok(replay(&["A\n", "D", "# P"])));
        let requests: Vec<ModelRequest> = ran.unwrap().into_iter().map(|ran| ran.request).collect();
        let expected = |system: &str, input: &str, message: &str| ModelRequest {
            system: system.into(),
            input: input.into(),
            message: message.into(),
            max_tokens: None,
        };
        assert_eq!(
            requests[0],
            expected(
                "",
                "IN",
                "Analyse.\n\n## The user's message\n\n````\nMSG\n````"
            )
        );
        assert_eq!(requests[1], expected("", "", "Decide on: A"));
        assert_eq!(
            requests[2],
            expected(
                "SYS",
                "IN",
                "Plan.\n\n## The user's message\n\n````\nMSG\n````\n\n## Output of step `decision`\n\n````\nD\n````"
            )
        );
    }

    #[test]
    fn st8_placeholders_are_filled_in_and_a_backslash_keeps_them() {
        let (ran, _) = run_logged(
            "steps: [{name: a, prompt: 'S={{system}} I={{ input }} M={{message}} \\{{message}}'}]",
            &mut |_| Ok(replay(&["x"])),
        );
        let request = ran.unwrap().remove(0).request;
        assert_eq!(
            request,
            ModelRequest {
                message: "S=SYS I=IN M=MSG {{message}}".into(),
                ..ModelRequest::default()
            }
        );
    }

    #[test]
    fn st10_the_last_answer_is_the_plan_and_each_step_is_told() {
        let (ran, log) = run_logged(THREE, &mut |_| Ok(replay(&["A", "D", "# P"])));
        assert_eq!(
            ran.unwrap().pop().map(|ran| ran.answer.text).as_deref(),
            Some("# P")
        );
        assert_eq!(
            log,
            [
                "0 analysis",
                "< A",
                "analysis done",
                "1 decision",
                "< D",
                "decision done",
                "2 plan",
                "< # P",
                "plan done"
            ]
        );
    }

    #[test]
    fn st11_every_model_is_opened_before_anything_is_sent() {
        let yaml = "steps: [{name: a, prompt: x}, {name: b, prompt: x, model: keyless}]";
        let missing = ModelError::NoKey {
            model: "keyless".into(),
            variable: "KEY".into(),
        };
        let (result, log) = run_logged(yaml, &mut |name| {
            if name.is_none() {
                Ok(replay(&["A"]))
            } else {
                Err(missing.clone())
            }
        });
        assert_eq!(
            result,
            Err(Stopped {
                ran: Vec::new(),
                step: "b".into(),
                error: Box::new(missing.clone())
            })
        );
        assert_eq!(log, Vec::<String>::new());
    }

    #[test]
    fn st13_a_step_has_a_folder_of_its_own() {
        assert_eq!(
            [step_dir(0, "analysis"), step_dir(11, "plan")],
            ["steps/01-analysis", "steps/12-plan"]
        );
    }

    #[test]
    fn st12_a_step_that_fails_stops_and_what_ran_is_kept() {
        let (result, _) = run_logged(THREE, &mut |_| Ok(replay(&["A"])));
        let stopped = result.unwrap_err();
        assert_eq!(
            (
                stopped.ran.len(),
                stopped.ran[0].answer.text.as_str(),
                stopped.step.as_str()
            ),
            (1, "A", "decision")
        );
        assert_eq!(*stopped.error, ModelError::ReplayEnded { answers: 1 });
    }

    #[test]
    fn st12_a_cut_answer_fails_a_step_but_the_last() {
        let (result, _) = run_logged(
            "steps: [{name: a, prompt: x}, {name: b, prompt: x}]",
            &mut |_| Ok(Box::new(Cut)),
        );
        assert_eq!(
            *result.unwrap_err().error,
            ModelError::Truncated {
                partial: "half".into()
            }
        );
        let (result, _) = run_logged("steps: [{name: a, prompt: x}]", &mut |_| Ok(Box::new(Cut)));
        assert_eq!(result.unwrap()[0].answer.finish, Finish::Length);
    }
}
