//! `teddy export --html`: writes static pages.

use std::path::Path;
use std::process::ExitCode;

use super::bundle::requested_sessions;
use super::{Args, elsewhere};
use crate::cli::app::App;
use crate::cli::exit;
use crate::host::file::OutputDir;
use crate::text::counted;
use crate::ui::web::files::PageFiles;
use crate::workflow::project::project_name;
use crate::workflow::view::plain::redaction;

/// Directory below `.git/teddy` with the records of exported pages.
const EXPORT_RECORDS: &str = "exports";

pub(super) fn export_html(dir: &Path, args: &Args, app: &App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let files = PageFiles {
        project: &project,
        name: &project_name(&project),
        sessions: &requested_sessions(&project, args)?,
        redaction: &redaction(project.user_dirs.home.as_deref()),
    };
    for session in files.sessions {
        project.store().tip_id(session)?;
    }

    let records = project.repository.teddy_dir().join(EXPORT_RECORDS);
    let mut written =
        OutputDir::begin(&app.global.resolve(dir), Some(&records)).map_err(elsewhere)?;
    files.write(&mut |name, text| Ok(written.write(name, text.as_bytes())?))?;
    let pages = written.finish()?;

    let names = files.sessions;
    if app.global.json {
        app.print_json(&serde_json::json!({
            "folder": app.dir()?.join(dir),
            "sessions": names,
            "pages": pages,
        }))?;
        return Ok(exit::SUCCESS.into());
    }

    app.print(format!("{}\n", dir.display()))?;
    app.note(&format!(
        "{} of {}, without what looks like a key or a home directory. Read them before you share them.",
        counted(u32::try_from(pages).unwrap_or(u32::MAX), "file"),
        counted(u32::try_from(names.len()).unwrap_or(u32::MAX), "session"),
    ));
    Ok(exit::SUCCESS.into())
}
