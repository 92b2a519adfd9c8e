//! Decides whether a plan comes from one model or from a pipeline. Finds and checks pipelines, and
//! opens all their models before anything is sent.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::Context as _;

use crate::config::trust;
use crate::model::ModelError;
use crate::model::pipeline::{KnownNames, Pipeline, PipelineStep, parse};
use crate::project::Project;
use crate::session::meta::MessageOrigin;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::workflow::model::choose::{self, OpenedModel, PricedModel};

pub enum PlanSource {
    Model(PricedModel),
    Pipeline(PreparedPipeline),
}

/// An explicit model overrides the configured pipeline. A rejected plan is corrected without a
/// pipeline.
pub fn plan_source(
    project: &Project,
    tip: &Turn,
    model: Option<&str>,
    pipeline: Option<&str>,
    origin: MessageOrigin,
) -> anyhow::Result<PlanSource> {
    let of_session = project.session_model(&tip.session);
    let model = model.or(of_session.as_deref());
    let usual = project
        .settings
        .pipeline
        .as_deref()
        .filter(|_| model.is_none() && origin != MessageOrigin::Validation);
    match pipeline.or(usual) {
        Some(name) => prepare_pipeline(project, tip, name, model).map(PlanSource::Pipeline),
        None => choose::choose(project, tip, model).map(PlanSource::Model),
    }
}

const PIPELINES_DIR: &str = "pipelines";

pub struct PreparedPipeline {
    pub name: String,
    pub pipeline: Pipeline,
    /// By the name that steps use; `None` for the default model.
    pub models: HashMap<Option<String>, PricedModel>,
}

type PipelineFiles = BTreeMap<String, String>;

/// `model` is for steps that name none.
pub fn prepare_pipeline(
    project: &Project,
    tip: &Turn,
    name: &str,
    model: Option<&str>,
) -> anyhow::Result<PreparedPipeline> {
    let pipeline = read_pipeline(project, name)?;
    let mut models = HashMap::new();
    for step in &pipeline.steps {
        if !models.contains_key(&step.model) {
            let requested = step.model.as_deref().or(model);
            let chosen = choose::choose(project, tip, requested)
                .with_context(|| format!("step `{}` of pipeline `{name}`", step.name))?;
            if matches!(chosen.model, OpenedModel::Acts(_)) {
                must_be_last(&pipeline, step)?;
            }
            models.insert(step.model.clone(), chosen);
        }
    }

    Ok(PreparedPipeline {
        name: name.to_owned(),
        pipeline,
        models,
    })
}

/// An acting model returns a plan, which no later step can use as input.
fn must_be_last(pipeline: &Pipeline, step: &PipelineStep) -> anyhow::Result<()> {
    let others = pipeline.steps.iter().rev().skip(1);
    let mut others = others.filter(|other| other.model == step.model);
    match others.next() {
        None => Ok(()),
        Some(other) => Err(error_with_hint(
            format!(
                "the model of step `{}` edits files itself, which only the last step can do",
                other.name
            ),
            "give the step a `model` that writes its answer",
        )),
    }
}

pub fn read_pipeline(project: &Project, name: &str) -> anyhow::Result<Pipeline> {
    let (text, files) = pipeline_text(project, name)?;
    let file = |file_name: &str| {
        files
            .get(file_name)
            .cloned()
            .ok_or_else(|| "it does not exist, or is not a .md, .txt or .xml file".to_owned())
    };
    let check_model = |name: &str| {
        choose::model_settings(project, name)
            .map(drop)
            .map_err(|error| match error.downcast_ref::<ModelError>() {
                Some(model @ ModelError::NoSuchModel { .. }) => {
                    format!("{model}: {}", model.remedy())
                }
                _ => error.to_string(),
            })
    };

    parse(
        &text,
        &KnownNames {
            file: &file,
            model: &check_model,
        },
    )
    .with_context(|| format!("pipeline `{name}`"))
}

/// With the files next to it.
fn pipeline_text(project: &Project, name: &str) -> anyhow::Result<(String, PipelineFiles)> {
    let display_name = crate::text::sanitize::sanitize_line(name);
    anyhow::ensure!(
        // The name becomes a file name.
        !name.contains(['/', '\\']) && !name.starts_with('.'),
        "`{display_name}` is not a valid pipeline name"
    );
    let file = format!("{name}.yaml");
    let [shared, own] = pipelines(project);

    // A trusted repository takes precedence over the user's own.
    for files in [&shared]
        .into_iter()
        .filter(|_| project.trusted)
        .chain([&own])
    {
        if let Some(text) = files.get(&file) {
            return Ok((text.clone(), files.clone()));
        }
    }

    if shared.contains_key(&file) {
        return Err(error_with_hint(
            format!("pipeline `{display_name}` of this repository is not trusted"),
            "`teddy trust` shows it and remembers it",
        ));
    }

    let names = list_pipelines(project);
    let hint = if names.is_empty() {
        "there is none yet; `teddy plan -m '<message>'` works without".to_owned()
    } else {
        format!(
            "`--pipeline <name>` takes one of these: {}",
            names.join(", ")
        )
    };

    let own = project.user_dirs.config.join(PIPELINES_DIR);
    let message = format!(
        "there is no pipeline `{display_name}` in `.teddy/{PIPELINES_DIR}/` or `{}`",
        own.display()
    );
    Err(error_with_hint(message, hint))
}

pub fn list_pipelines(project: &Project) -> Vec<String> {
    let [shared, own] = pipelines(project);
    let files = shared.keys().filter(|_| project.trusted).chain(own.keys());
    files
        .filter_map(|file| file.strip_suffix(".yaml"))
        .map(str::to_owned)
        .collect()
}

/// Of the repository, exactly the bytes that the trust decision covers, and of the user.
fn pipelines(project: &Project) -> [PipelineFiles; 2] {
    let inside = |(path, text): (&String, &String)| {
        let name = Path::new(path).strip_prefix(PIPELINES_DIR).ok()?.to_str()?;
        Some((name.to_owned(), text.clone()))
    };
    let own = trust::read_dir_files(&project.user_dirs.config, PIPELINES_DIR);
    [project.proposed.iter().filter_map(inside).collect(), own]
}
