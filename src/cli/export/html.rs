//! `teddy export --html`: writes static pages.

use std::path::Path;
use std::process::ExitCode;

use super::bundle::sessions;
use super::{Args, elsewhere};
use crate::cli::app::App;
use crate::cli::exit;
use crate::host::file::WholeFolder;
use crate::text::counted;
use crate::ui::web::files::PageFiles;
use crate::workflow::project::project_name;
use crate::workflow::view::plain::redaction;

/// Directory below `.git/teddy` with the records of exported pages.
const RECORDS: &str = "exports";

pub(super) fn run(folder: &Path, args: &Args, app: &App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let files = PageFiles {
        project: &project,
        name: &project_name(&project),
        sessions: &sessions(&project, args)?,
        redaction: &redaction(project.places.home.as_deref()),
    };
    for session in files.sessions {
        project.store().tip_id(session)?;
    }

    let records = project.repository.teddy_dir().join(RECORDS);
    let mut written =
        WholeFolder::begin(&app.global.place(folder), Some(&records)).map_err(elsewhere)?;
    files.write(&mut |name, text| Ok(written.write(name, text.as_bytes())?))?;
    let pages = written.finish()?;

    let names = files.sessions;
    if app.global.json {
        app.print_json(&serde_json::json!({
            "folder": app.folder()?.join(folder),
            "sessions": names,
            "pages": pages,
        }))?;
        return Ok(exit::DONE.into());
    }

    app.print(format!("{}\n", folder.display()))?;
    app.say(&format!(
        "{} of {}, without what looks like a key or a home directory. Read them before you share them.",
        counted(u32::try_from(pages).unwrap_or(u32::MAX), "file"),
        counted(u32::try_from(names.len()).unwrap_or(u32::MAX), "session"),
    ));
    Ok(exit::DONE.into())
}
