//! `teddy export --format`: prints a summary of a session.

use std::process::ExitCode;

use super::SummaryFormat;
use crate::cli::app::App;
use crate::cli::exit;
use crate::session::name::SessionName;
use crate::workflow::summary::markdown;
use crate::workflow::summary::summary;

pub(super) fn export_summary(
    names: &[String],
    format: SummaryFormat,
    app: &App,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(names.len() < 2, "a summary is of one session");
    let project = app.record()?;
    let session = match names.first() {
        Some(name) => SessionName::from_address(name)?,
        None => project.session()?,
    };
    let summary = summary(&project, &session)?;

    match (format, app.global.json) {
        (SummaryFormat::Json, _) => app.print_json(&summary)?,
        (SummaryFormat::Md, true) => app.print_json(&serde_json::json!({
            "session": session,
            "markdown": markdown::render(&summary),
        }))?,
        (SummaryFormat::Md, false) => app.print(markdown::render(&summary))?,
    }
    Ok(exit::SUCCESS.into())
}
