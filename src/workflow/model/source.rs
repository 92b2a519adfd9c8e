//! Decides whether a plan comes from one model or from a pipeline.

use crate::project::Project;
use crate::session::meta::MessageOrigin;
use crate::session::turn::Turn;
use crate::workflow::model::choose;
use crate::workflow::model::choose::PricedModel;
use crate::workflow::model::pipelines;
use crate::workflow::model::pipelines::PreparedPipeline;

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
        Some(name) => {
            pipelines::prepare_pipeline(project, tip, name, model).map(PlanSource::Pipeline)
        }
        None => choose::choose(project, tip, model).map(PlanSource::Model),
    }
}
