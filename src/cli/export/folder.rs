//! `teddy export DIR`

use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::app::App;
use crate::cli::exit;
use crate::cli::failure::WrongWord;
use crate::session::name::SessionName;
use crate::text::visible::visible;
use crate::workflow::project::Project;

/// Writes the folders.
pub(super) fn run(names: &[String], app: &App) -> anyhow::Result<ExitCode> {
    if names.len() > 1 {
        let what = "the turns of a session are written to one directory".to_owned();
        let hint = "`--bundle <file>` and `--html <directory>` take several sessions".to_owned();
        return Err(WrongWord { what, hint }.into());
    }

    let project = app.record()?;
    let session = project.session()?;
    let named = names.first().map_or(session.as_str(), String::as_str);
    let target = app.folder()?.join(named);
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
    let width = turns
        .first()
        .map_or(2, |tip| tip.number().to_string().len().max(2));

    for turn in &turns {
        let folder = target.join(format!("{:0width$}", turn.number()));
        anyhow::ensure!(
            !folder.exists(),
            "`{}` already exists; name another directory",
            folder.display()
        );
        for (name, content) in project.repository.files(turn.tree)? {
            let plain = std::path::Path::new(&name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            anyhow::ensure!(
                plain,
                "turn {} has a file of the name `{name}`, which is none",
                turn.number()
            );
            let path = folder.join(&name);
            let parent = path.parent().expect("a file has a folder");

            std::fs::create_dir_all(parent)
                .with_context(|| format!("making `{}`", parent.display()))?;
            std::fs::write(&path, content)
                .with_context(|| format!("writing `{}`", path.display()))?;
        }
    }

    if app.global.json {
        app.print_json(&serde_json::json!({ "folder": target, "turns": turns.len() }))?;
    } else {
        app.print(format!("{named}\n"))?;
    }

    Ok(exit::DONE.into())
}

/// Returns whether a word is the name of a session, and not of the one that is exported.
fn is_another(project: &Project, session: &SessionName, word: &str) -> bool {
    let named = SessionName::from_address(word);
    named.is_ok_and(|named| named != *session && project.store().tip_id(&named).is_ok())
}
