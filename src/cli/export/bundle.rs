//! `teddy export --bundle`: writes sessions to a git bundle.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;

use super::Args;
use crate::cli::app::App;
use crate::cli::exit;
use crate::session::name::SessionName;
use crate::text::{counted, sized};
use crate::workflow::archive::export::{Drafts, Existing, SessionBundle, collect_sessions};
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;

pub(super) fn export_bundle(file: &Path, args: &Args, app: &App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let sessions = requested_sessions(&project, args)?;
    let drafts = match args.drafts {
        true => Drafts::Included,
        false => Drafts::LeftOut,
    };
    let bundle = collect_sessions(&project, &sessions, drafts)?;

    if file == Path::new("-") {
        return bundle_to_stdout(&project, &bundle, app);
    }

    let path = app.global.resolve(file);
    let existing = match args.force {
        true => Existing::Replaced,
        false => Existing::Stays,
    };
    let bytes = bundle.save(&project, &path, existing)?;
    if app.global.json {
        app.print_json(&serde_json::json!({
            "file": app.dir()?.join(file),
            "bytes": bytes,
            "sessions": bundle.manifest.sessions,
        }))?;
        return Ok(exit::SUCCESS.into());
    }

    app.print(format!("{}\n", file.display()))?;
    app.note(&format!(
        "{} in {}. It holds snapshots, inputs and outputs as they are.",
        counted(sessions.len(), "session"),
        sized(bytes)
    ));
    Ok(exit::SUCCESS.into())
}

/// Returns the requested sessions.
pub(super) fn requested_sessions(
    project: &Project,
    args: &Args,
) -> anyhow::Result<Vec<SessionName>> {
    if args.all {
        let all = project.store().sessions()?;
        anyhow::ensure!(!all.is_empty(), "there are no sessions");
        return Ok(all.into_iter().map(|(name, _)| name).collect());
    }

    if args.names.is_empty() {
        return Ok(vec![project.session()?]);
    }
    let mut sessions = args
        .names
        .iter()
        .map(|name| SessionName::from_address(name))
        .collect::<Result<Vec<_>, _>>()?;
    sessions.sort();
    sessions.dedup();

    Ok(sessions)
}

/// Writes the bundle to stdout, which must be a pipe or a file.
fn bundle_to_stdout(
    project: &Project,
    bundle: &SessionBundle,
    app: &App,
) -> anyhow::Result<ExitCode> {
    if app.global.json {
        return Err(error_with_hint(
            "standard output cannot have both the bundle and JSON",
            "name a file",
        ));
    }
    anyhow::ensure!(
        !crate::host::screen::is_stdout(),
        "a bundle is nothing to look at: name a file, or redirect standard output"
    );

    let out = std::io::stdout().as_fd().try_clone_to_owned()?;
    bundle.write(project, File::from(out))?;
    let count = bundle.manifest.sessions.len();
    app.note(&format!(
        "{}. It holds snapshots, inputs and outputs as they are.",
        counted(count, "session")
    ));
    Ok(exit::SUCCESS.into())
}
