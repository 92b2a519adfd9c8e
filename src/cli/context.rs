//! `teddy context`: shows or changes the model's next input.

use serde_json::json;

use super::app::App;
use super::request::{warn_hidden, warn_secret};
use super::{complete, number};
use crate::host::screen;
use crate::project::Project;
use crate::query::paths;
use crate::session::input::{ListScope, ResourceBody};
use crate::text::sanitize::sanitize_line;
use crate::ui::editing::edit_text;
use crate::ui::editor::Choices;
use crate::workflow::context::edit;
use crate::workflow::context::edit::{Edited, ListEdit};
use crate::workflow::user::NobodyToAsk;

/// Show the model's next input, or change what it includes
///
/// Three lists name what the model sees: the turn's (which the model manages with READ and PRUNE),
/// the session's, and `.teddy/global.context` for every session. An entry is a file, a directory, a
/// pattern or a URL.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy context                          the next input.md\n  teddy context add src/ README.md       for this session\n  teddy context add --turn src/main.rs   for the next turn\n  teddy context rm README.md\n  teddy context list"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<ContextCommand>,
    /// Also show this many turns before the previous one
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::depth)]
    context_depth: u64,
}

/// What to do with the lists.
#[derive(clap::Subcommand)]
enum ContextCommand {
    /// Add files, directories, patterns or URLs
    #[command(
        after_help = "Examples:\n  teddy context add src/ README.md\n  teddy context add --turn 'tests/*.py'\n  teddy context add --global docs/style.md https://example.org/api"
    )]
    Add(Entries),
    /// Remove files, directories, patterns or URLs, from the turn's and the session's list if none is
    /// named
    #[command(mut_arg("resources", |arg| arg.add(complete::with(complete::entries))), after_help = "Examples:\n  teddy context rm README.md\n  teddy context rm --global docs/style.md")]
    Rm(Entries),
    /// Edit a list in your editor
    #[command(after_help = "Examples:\n  teddy context edit\n  teddy context edit --global")]
    Edit(WhichList),
    /// List what the model will see, with token counts
    #[command(after_help = "Examples:\n  teddy context list\n  teddy context list --json")]
    List,
}

/// Entries and their list.
#[derive(clap::Args)]
struct Entries {
    /// Files, directories and patterns, relative to the current directory or, with a leading `/`, to
    /// the project's root; URLs
    #[arg(required = true, value_name = "RESOURCE", value_hint = clap::ValueHint::AnyPath)]
    resources: Vec<String>,
    #[command(flatten)]
    scope: WhichList,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct WhichList {
    /// The turn's own list
    #[arg(long)]
    turn: bool,
    /// The session's list (the default of `add`); `--session` means the same here
    #[arg(long = "session-list", id = "session-list")]
    session_wide: bool,
    /// The list of every session, `.teddy/global.context`
    #[arg(long)]
    global: bool,
}

impl WhichList {
    fn is_given(&self) -> bool {
        self.turn || self.session_wide || self.global
    }

    fn scope(&self) -> ListScope {
        match self {
            WhichList { turn: true, .. } => ListScope::Turn,
            WhichList { global: true, .. } => ListScope::Global,
            _ => ListScope::Session,
        }
    }
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let project = app.project()?;
    match args.command {
        None => {
            let mut user = app.user(&project, false);
            let text = edit::make_context(&project, args.context_depth, user.as_mut())?;
            if app.global.json {
                app.print_json(&json!({ "input": text }))?
            } else {
                app.page_markdown(&project, text.as_bytes())?
            }
        }
        Some(ContextCommand::List) => list(app, &project, args.context_depth)?,
        Some(ContextCommand::Add(entries)) => change(app, &project, ListEdit::Add, &entries)?,
        Some(ContextCommand::Rm(entries)) => change(app, &project, ListEdit::Remove, &entries)?,
        Some(ContextCommand::Edit(which)) => edit(app, &project, which.scope())?,
    }

    Ok(())
}

fn change(app: &App, project: &Project, edit: ListEdit, entries: &Entries) -> anyhow::Result<()> {
    let resources = paths::entries(&project.repository, &app.dir()?, &entries.resources)?;
    let scope = entries.scope.scope();
    let edited = if edit == ListEdit::Remove && !entries.scope.is_given() {
        remove(app, project, resources.iter().zip(&entries.resources))?
    } else {
        let mut user = app.user(project, false);
        let edited = edit::edit_context(project, scope, edit, &resources, user.as_mut())?;
        edited.into_iter().map(|row| (scope, row)).collect()
    };

    if !app.global.json {
        let report = |(scope, row): &(ListScope, Edited)| report_entry(app, edit, *scope, row);
        edited.iter().for_each(report);
        return Ok(());
    }
    let changed = edited.iter().filter(|(_, row)| row.changed);
    app.print_json(&match edit {
        ListEdit::Add => {
            let names: Vec<&String> = changed.map(|(_, row)| &row.name).collect();
            json!({ "list": list_name(scope), "changed": names })
        }
        ListEdit::Remove => {
            let row = |(scope, row): &(ListScope, Edited)| json!({ "list": list_name(*scope), "name": row.name });
            json!({ "removed": changed.map(row).collect::<Vec<_>>() })
        }
    })
}

/// Removes entries from the list of the turn and that of the session. An entry is also found
/// by its name in the list, as `list` prints it, from any directory.
fn remove<'a>(
    app: &App,
    project: &Project,
    entries: impl Iterator<Item = (&'a String, &'a String)>,
) -> anyhow::Result<Vec<(ListScope, Edited)>> {
    let mut user = app.user(project, false);
    let mut edited = Vec::new();
    for (resolved, typed) in entries {
        let (mut removed, mut missing) = (Vec::new(), Vec::new());
        for name in [resolved, typed] {
            if !removed.is_empty() {
                break;
            }
            let names = std::slice::from_ref(name);
            for scope in [ListScope::Session, ListScope::Turn] {
                let rows =
                    edit::edit_context(project, scope, ListEdit::Remove, names, user.as_mut())?;
                for row in rows {
                    match row.changed {
                        true => removed.push((scope, row)),
                        false => missing.push((scope, row)),
                    }
                }
            }
        }
        missing.truncate(usize::from(removed.is_empty()));
        edited.extend(removed.into_iter().chain(missing));
    }
    Ok(edited)
}

fn list_name(scope: ListScope) -> String {
    scope.title().to_lowercase()
}

fn report_entry(app: &App, edit: ListEdit, scope: ListScope, entry: &Edited) {
    let list = list_name(scope);
    let name = sanitize_line(&entry.name);
    let near = entry.near.as_deref().map_or_else(String::new, |near| {
        format!("; did you mean `{}`?", sanitize_line(near))
    });
    if entry.changed && entry.is_ignored {
        return app.warn(&format!(
            "git ignores every file in `{name}`, so the model sees none of them; add the files that it should see ({list})"
        ));
    }
    if entry.is_hidden {
        return warn_hidden(app, &entry.name);
    }
    if edit == ListEdit::Add && entry.changed && entry.is_missing {
        return app.warn(&format!(
            "there is no `{name}` yet; it is in the list now ({list}){near}"
        ));
    }
    app.note(&match (edit, entry.changed) {
        (ListEdit::Add, true) => format!("Added {name} ({list})"),
        (ListEdit::Add, false) => format!("{name} is there already ({list})"),
        (ListEdit::Remove, true) => format!("Removed {name} ({list})"),
        (ListEdit::Remove, false) => format!("`{name}` is not in the list ({list}){near}"),
    });
    if entry.is_secret {
        warn_secret(app, &entry.name);
    }
}

fn edit(app: &App, project: &Project, scope: ListScope) -> anyhow::Result<()> {
    let before = edit::read_context(project, scope)?;
    if !screen::can_prompt() {
        let message = "there is no terminal for an editor";
        let hint =
            "`teddy context add <resource>` and `teddy context rm <resource>` change the list";
        return Err(NobodyToAsk::new(message, hint).into());
    }
    let choices = Choices {
        core_editor: project.repository.config("core.editor"),
        ..Choices::default()
    };
    let after = edit_text(&choices.any()?, &before)?;
    let text = format!("{after}\n");
    let mut user = app.user(project, false);

    edit::write_context(project, scope, &before, &text, user.as_mut())?;
    if app.global.json {
        return app.print_json(&json!({ "list": list_name(scope), "text": text }));
    }

    app.note("Saved.");
    Ok(())
}

/// Lists the resources that the model will see.
fn list(app: &App, project: &Project, depth: u64) -> anyhow::Result<()> {
    let material = edit::list_context(project, depth)?;
    let total: usize = material.resources.iter().map(|item| item.tokens).sum();
    if app.global.json {
        let rows: Vec<_> = material
            .resources
            .iter()
            .map(|item| {
                let scope = list_name(item.scope);
                json!({ "resource": item.resource, "scope": scope, "tokens": item.tokens, "missing": item.body == ResourceBody::Missing })
            })
            .collect();
        return app.print_json(&rows);
    }

    let mut text = String::new();
    for item in &material.resources {
        let note = match &item.body {
            ResourceBody::Text(_) => String::new(),
            ResourceBody::Request => "  (a request)".to_owned(),
            ResourceBody::Missing => "  (missing)".to_owned(),
            ResourceBody::Binary { .. } => "  (binary)".to_owned(),
            ResourceBody::TooLarge { .. } => "  (too large)".to_owned(),
            ResourceBody::Failed(why) => format!("  ({})", sanitize_line(why)),
        };
        let (scope, name) = (list_name(item.scope), sanitize_line(&item.resource));
        text.push_str(&format!("{scope:8} {:>8}  {name}{note}\n", item.tokens));
    }

    text.push_str(&format!("{:8} {total:>8}\n", "total"));
    app.print(text)
}
