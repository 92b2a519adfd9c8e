//! `teddy export DIR`: writes the turns of a session to directories.
//!
//! A session can come from an untrusted source. Entries of a turn other than its known files are
//! reported and not written: they could contain a git repository, which git would then use.

use std::path::Path;
use std::process::ExitCode;

use super::elsewhere;
use crate::cli::app::App;
use crate::cli::exit;
use crate::cli::failure::WrongWord;
use crate::host::file::{Root, WholeFolder};
use crate::session::artifact;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::counted;
use crate::text::visible::{excerpt, visible};
use crate::workflow::hinted::hinted;
use crate::workflow::project::Project;

/// Characters shown of a name that was not written.
const MAX_SHOWN: usize = 200;

pub(super) fn run(names: &[String], app: &App) -> anyhow::Result<ExitCode> {
    if names.len() > 1 {
        let what = "the turns of a session are written to one directory".to_owned();
        let hint = "`--bundle <file>` and `--html <directory>` take several sessions".to_owned();
        return Err(WrongWord { what, hint }.into());
    }

    let project = app.record()?;
    let session = project.session()?;
    let here = app.folder()?;
    let named = names.first().map_or(session.as_str(), String::as_str);
    let target = here.join(named);
    if names.is_empty() {
        is_reachable(&here, named)?;
    }
    if !target.is_dir() && is_another(&project, &session, named) {
        let named = visible(named);
        return Err(WrongWord {
            what: format!("`{named}` is a session, and its turns need a directory"),
            hint: format!(
                "`teddy -s {named} export` exports it; `teddy export ./{named}` makes a directory for \
                 session `{session}`"
            ),
        }
        .into());
    }

    let turns: Vec<_> = project
        .store()
        .history(project.store().tip(&session)?)
        .collect::<anyhow::Result<_>>()?;

    let mut folder = WholeFolder::begin(&target, None).map_err(elsewhere)?;
    let left_out = write(&project, &turns, &mut folder)?;
    folder.finish().map_err(elsewhere)?;

    if let [first, ..] = left_out.as_slice() {
        let first = visible(first);
        app.warn(&format!(
            "left out {} that a turn of TeDDy cannot have, such as `{}`",
            counted(left_out.len(), "file"),
            excerpt(&first, MAX_SHOWN)
        ));
    }
    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": target, "turns": turns.len() }))?;
    } else {
        app.print(format!("{named}\n"))?;
    }

    Ok(exit::DONE.into())
}

/// Returns whether a word names another session than the exported one.
fn is_another(project: &Project, session: &SessionName, word: &str) -> bool {
    let named = SessionName::from_address(word);
    named.is_ok_and(|named| named != *session && project.store().tip_id(&named).is_ok())
}

/// Checks that the default directory is below the current one. In an untrusted project, a link
/// could lead elsewhere.
fn is_reachable(here: &Path, named: &str) -> anyhow::Result<()> {
    let found = Root::open(here)?.kind(Path::new(named));
    found.map_err(|error| hinted(error.to_string(), "name another directory"))?;
    Ok(())
}

/// Writes the files of turns, newest first, and returns the omitted ones.
fn write(
    project: &Project,
    turns: &[Turn],
    folder: &mut WholeFolder,
) -> anyhow::Result<Vec<String>> {
    let width = turns
        .first()
        .map_or(2, |tip| tip.number().to_string().len().max(2));
    let mut left_out = Vec::new();

    for turn in turns {
        for (name, content) in project.repository.files(turn.tree)? {
            let path = format!("{:0width$}/{name}", turn.number());
            if artifact::is_known(&name) {
                folder.write(&path, &content)?;
            } else {
                left_out.push(path);
            }
        }
    }
    Ok(left_out)
}
