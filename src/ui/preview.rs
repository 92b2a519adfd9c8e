//! What a memo, an action or a pair would do, as lines for the pane beside the list.

mod resource;

use super::checklist::{Checklist, Part, Row};
use super::diff::{self, Change};
use super::draft::Draft;
use super::style::{Line, Tone, block};
use super::{markdown, mistakes, risk, summary};
use crate::plan::action::edit::Pair;
use crate::plan::action::execute::Execute;
use crate::plan::action::{Action, ActionKind};
use crate::plan::validate::Step;
use crate::text::resource::Resource;

/// Returns the preview of a row.
pub fn lines(draft: &Draft, list: &Checklist, row: Row) -> Vec<Line> {
    match row {
        Row::Memos => vec![Line::plain("Changes of the memory, .teddy/memos.yaml")],
        Row::Actions => block(Tone::Plain, &draft.plan.rationale),
        Row::Item(index) => item(draft, list, index),
        Row::Pair(index, pair) => match pair_of(draft, list.items[index].part, pair) {
            Some(found) => problem(list.items[index].pairs[pair].problem.as_deref())
                .into_iter()
                .chain(replaced(found))
                .collect(),
            None => Vec::new(),
        },
    }
}

/// Returns the preview of an action: description, risks, then what it does.
pub fn action(action: &Action, step: &Step) -> Vec<Line> {
    let mut lines = block(Tone::Faint, action.description());
    lines.extend(
        risk::of_action(action, step)
            .iter()
            .map(|text| Line::of(Tone::Warning, &format!("⚠ {text}"))),
    );
    if !lines.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(content(&action.kind, step));
    lines
}

/// Returns the preview of an item.
fn item(draft: &Draft, list: &Checklist, index: usize) -> Vec<Line> {
    let item = &list.items[index];
    let mut lines: Vec<Line> = problem(item.problem.as_deref()).into_iter().collect();
    match item.part {
        Part::Memo(at) => lines.push(summary::memo(&draft.plan.memos[at])),
        Part::Action(at) => {
            let here = draft
                .mistakes
                .iter()
                .filter(|(place, _)| *place == item.part && item.on);
            lines.extend(here.flat_map(|(_, mistake)| mistakes::diagnostic(mistake)));
            lines.extend(action(&draft.plan.actions[at], &draft.steps[at]));
            lines.extend(resource::content(draft, list, at));
        }
    }
    lines
}

/// Returns what an action does.
fn content(kind: &ActionKind, step: &Step) -> Vec<Line> {
    match kind {
        ActionKind::Create(create) => {
            let after = step.after.as_deref().unwrap_or(create.content.as_bytes());
            diff::unified(&Change {
                path: create.path.as_str(),
                before: step.before.as_deref(),
                after: Some(after),
            })
        }
        ActionKind::Edit(edit) => match step.after.as_deref() {
            Some(after) => diff::unified(&Change {
                path: edit.path.as_str(),
                before: step.before.as_deref(),
                after: Some(after),
            }),
            None => edit.pairs.iter().flat_map(replaced).collect(),
        },
        ActionKind::Execute(execute) => command(execute),
        ActionKind::Research(research) => research
            .queries
            .iter()
            .flat_map(|query| block(Tone::Accent, query))
            .collect(),
        ActionKind::Read(read) => vec![named("joins the context", &read.resource)],
        ActionKind::Prune(prune) => vec![named("leaves the context", &prune.resource)],
        ActionKind::ChatWithUser(chat) => markdown::rendered(&chat.message),
        ActionKind::Invoke(invoke) => handed(
            &format!("{} takes over, with", invoke.agent),
            &invoke.resources,
            &invoke.message,
        ),
        ActionKind::Conclude(conclude) => {
            handed("concludes, with", &conclude.resources, &conclude.message)
        }
    }
}

/// Returns a command, whole, and what the model expects of it.
fn command(execute: &Execute) -> Vec<Line> {
    let mut lines = summary::command(execute);
    if !execute.expected_outcome.is_empty() {
        lines.push(Line::default());
        lines
            .push(Line::of(Tone::Faint, "expected: ").with(Tone::Plain, &execute.expected_outcome));
    }
    lines
}

/// Returns a resource and what becomes of it.
fn named(what: &str, resource: &Resource) -> Line {
    Line::of(Tone::Accent, &resource.to_string())
        .with(Tone::Plain, &format!(" {what} of the next turn"))
}

/// Returns a hand-over: resources and message.
fn handed(what: &str, resources: &[Resource], message: &str) -> Vec<Line> {
    let mut lines = vec![Line::plain(what)];
    lines.extend(
        resources
            .iter()
            .map(|resource| Line::of(Tone::Accent, &format!("  {resource}"))),
    );
    lines.push(Line::default());
    lines.extend(markdown::lines(message));
    lines
}

/// Returns a pair of an action.
fn pair_of(draft: &Draft, part: Part, pair: usize) -> Option<&Pair> {
    match part {
        Part::Action(at) => match &draft.plan.actions[at].kind {
            ActionKind::Edit(edit) => edit.pairs.get(pair),
            _ => None,
        },
        Part::Memo(_) => None,
    }
}

/// Returns a pair as lines that go and come.
fn replaced(pair: &Pair) -> Vec<Line> {
    let change = Change {
        path: "",
        before: Some(pair.find.as_bytes()),
        after: Some(pair.replace.as_bytes()),
    };
    let mut lines = vec![Line::of(Tone::Faint, "FIND → REPLACE")];
    let mut hunks = diff::body(&change).into_iter();
    // The first position says nothing; a further one stands for lines that stay.
    lines.extend(hunks.next().filter(|line| !line.text().starts_with("@@ ")));
    lines.extend(hunks.map(|line| {
        if line.text().starts_with("@@ ") {
            Line::of(Tone::Faint, "⋯")
        } else {
            line
        }
    }));
    lines
}

/// Returns why something cannot run.
fn problem(text: Option<&str>) -> Option<Line> {
    text.map(|text| Line::of(Tone::Removed, &format!("✗ {text}")))
}
