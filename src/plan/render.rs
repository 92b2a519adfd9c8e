//! Renders a plan in the format's exact spelling, with fences longer than any run of backticks
//! inside.
//!
//! Parsing the result gives the same plan, regardless of its texts: fields stay on their line,
//! contents inside their fences, and no message contains an action (P24).

use super::action::{Action, border, write_block};
use super::document::Plan;
use super::field::Field;
use super::line::{Section, field_item};
use super::memo;
use crate::text::markdown::heading_text;

pub fn render(plan: &Plan) -> String {
    let mut out = format!("# {}\n", title(&plan.title));
    for field in &plan.fields {
        field_item::write(field, &mut out);
    }

    section(Section::Rationale, &mut out);
    write_block(&plan.rationale, "text", &mut out);
    if !plan.memos.is_empty() {
        section(Section::Memos, &mut out);
        let mut block = String::new();
        plan.memos
            .iter()
            .for_each(|change| memo::write_change(change, &mut block));
        write_block(&block, "", &mut out);
    }

    section(Section::Plan, &mut out);
    for action in &plan.actions {
        write_action(action, &mut out);
    }

    out
}

fn section(section: Section, out: &mut String) {
    out.push_str(&format!("\n## {}\n", section.name()));
}

fn write_action(action: &Action, out: &mut String) {
    out.push_str(&format!("\n### `{}`\n", action.kind.name()));
    let fields = merged(action);
    for field in &fields {
        field_item::write(field, out);
    }

    match action.kind.message() {
        Some(message) => {
            if !fields.is_empty() {
                out.push('\n');
            }
            border::write_message(message, out);
        }
        None => action.kind.write(out),
    }
}

/// Returns an action's fields: those derived from its value, in the format's order, then the others
/// as written.
fn merged(action: &Action) -> Vec<Field> {
    let mut fields = action.kind.fields();
    let keys = action.kind.row().keys;
    fields.retain_mut(|field| {
        if field.key == "Description" {
            let own = action.fields.iter().find(|f| f.key == "Description");
            *field = own.cloned().unwrap_or_default();
        }
        !field.key.is_empty()
            && (field.key != "Description" || !field.value.is_empty() || !field.items.is_empty())
    });

    // Fields with an effect come only from the value, which the user can have edited.
    let others = action
        .fields
        .iter()
        .filter(|f| !keys.contains(&f.key.as_str()) && !field_item::has_weight(&f.key));
    fields.extend(others.cloned());
    fields
}

/// Returns a title that parsing preserves.
fn title(text: &str) -> String {
    let line = field_item::one_line(text);
    if heading_text(&format!("# {line}")) == line {
        line
    } else {
        // A closing `#` protects a title that ends with `#` itself.
        format!("{line} #")
    }
}

#[cfg(test)]
mod tests;
