//! Page that compares two turns: usage, and the diff between their resulting files.

use maud::{Markup, html};

use super::changes::{Changes, changes};
use super::layout::{PageLocation, dollars, first_crumb, page, status_badge};
use crate::text::grouped;
use crate::text::sanitize::sanitize_line;
use crate::workflow::compare::Side;

const UNKNOWN: &str = "–";

/// Returns the page. `changed`: how the files after the two turns differ.
pub fn compare(
    location: PageLocation,
    project: &str,
    sides: &[Side],
    changed: &Changes<'_>,
) -> String {
    let names: Vec<_> = sides.iter().map(|side| sanitize_line(&side.name)).collect();
    let title = format!("{} compared", names.join(" and "));
    let main = html! {
        h1 { (title) }
        (table(sides))
        section {
            h2 { "How the files after them differ" }
            @if changed.files.is_empty() { p.empty { "Not at all." } }
            @else { (changes(changed)) }
        }
    };
    page(
        location,
        &title,
        &[first_crumb(project)],
        &[None, None],
        main,
    )
}

fn table(sides: &[Side]) -> Markup {
    let row = |name: &str, cell: &dyn Fn(&Side) -> Markup| {
        html! { tr { th scope="row" { (name) } @for side in sides { td { (cell(side)) } } } }
    };
    let or_unknown = |value: Option<String>| html! { (value.as_deref().unwrap_or(UNKNOWN)) };
    html! {
        div.scroll {
            table.sides {
                thead {
                    tr { td {} @for side in sides { th scope="col" { (sanitize_line(&side.name)) } } }
                }
                tbody {
                    (row("Status", &|side| status_badge(side.status)))
                    (row("Model", &|side| {
                        let models = side.models.iter().map(|model| sanitize_line(model));
                        or_unknown(models.reduce(|all, next| format!("{all}, {next}").into())
                            .map(std::borrow::Cow::into_owned))
                    }))
                    (row("Files", &|side| html! { (side.files) }))
                    (row("Lines", &|side| or_unknown(side.added.zip(side.removed)
                        .map(|(added, removed)| format!("+{added} −{removed}")))))
                    (row("Tokens", &|side| or_unknown(side.tokens_in.zip(side.tokens_out)
                        .map(|(read, written)| {
                            format!("{} → {}", grouped(read), grouped(written))
                        }))))
                    (row("Cost", &|side| or_unknown(side.cost.map(dollars))))
                    (row("Time", &|side| or_unknown(side.seconds.map(|time| format!("{time:.1} s")))))
                }
            }
        }
    }
}
