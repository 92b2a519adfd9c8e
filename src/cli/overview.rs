//! `teddy` without a command: the current state, and what to do next.

use super::app::App;
use super::status;
use crate::git::open::OpenError;
use crate::project::Project;
use crate::text::sanitize::sanitize_line;

/// Output outside a repository.
const NO_REPOSITORY: &str = "\
TeDDy makes each turn of AI-assisted coding a git commit: reviewed, undoable, replayable.
In a repository, `teddy start '<what you want>'` begins; `teddy setup` finds a model first.
`teddy demo` plays a complete session in a scratch repository; `teddy help` lists the commands.
";

pub(super) fn run(app: &mut App) -> anyhow::Result<()> {
    if app.global.json {
        return status::run(status::Args {}, app);
    }

    let project = match app.project_for_reading() {
        Ok(project) => project,
        Err(error) if matches!(error.downcast_ref(), Some(OpenError::None(_))) => {
            app.print(NO_REPOSITORY)?;
            return Ok(());
        }
        Err(error) => return Err(error),
    };

    let is_new = project.session().is_err() && project.store().sessions()?.is_empty();
    if is_new {
        app.print("No session in this repository yet.\n")?;
        app.print(model(&project))?;
        app.note("Next: teddy start '<what you want>'");
        app.note("`teddy help` lists the commands; `teddy demo` plays a complete session.");
        return Ok(());
    }

    app.print(model(&project))?;
    status::show(app, &project)
}

fn model(project: &Project) -> String {
    let settings = &project.settings;
    match (&settings.model, &settings.pipeline) {
        (_, Some(pipeline)) => format!("Pipeline {}\n", sanitize_line(pipeline)),
        (Some(model), None) => format!("Model {}\n", sanitize_line(model)),
        (None, None) => "No model is configured yet; `teddy setup` finds one.\n".to_owned(),
    }
}
