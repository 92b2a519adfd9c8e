//! Where a plan comes from: one model, or a pipeline whose steps have models of their own.

use crate::session::meta::MessageOrigin;
use crate::session::turn::Turn;
use crate::workflow::model::choose;
use crate::workflow::model::choose::PricedModel;
use crate::workflow::model::pipelines;
use crate::workflow::model::pipelines::PreparedPipeline;
use crate::workflow::project::Project;

/// Where a plan comes from.
pub enum PlanSource {
    /// From one model.
    Model(PricedModel),
    /// In steps.
    Pipeline(PreparedPipeline),
}

/// Returns where a plan comes from: the wanted pipeline or the configured one, else a model. A
/// model that is named goes before the pipeline of the configuration, and a rejected plan is
/// corrected without one.
///
/// # Errors
/// As for [`choose::choose`]; all mistakes of a pipeline.
pub fn plan_source(
    project: &Project,
    tip: &Turn,
    model: Option<&str>,
    pipeline: Option<&str>,
    origin: MessageOrigin,
) -> anyhow::Result<PlanSource> {
    let usual = project
        .settings
        .pipeline
        .as_deref()
        .filter(|_| model.is_none() && origin != MessageOrigin::Validation);
    match pipeline.or(usual) {
        Some(name) => {
            pipelines::prepare_pipeline(project, tip, name, model).map(PlanSource::Pipeline)
        }
        None => choose::choose(project, tip, model).map(PlanSource::Model),
    }
}
