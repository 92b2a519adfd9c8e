//! Page that compares two turns: usage, and the diff between their resulting files.

use maud::{Markup, html};

use super::changes::{Changes, changes};
use super::layout::{PageParts, PagePlace, page};
use super::words::{badge, dollars, line, number};
use crate::workflow::compare::Side;

/// Data of the page.
pub struct Compared<'a> {
    /// Name of the project.
    pub project: &'a str,
    /// The compared turns.
    pub sides: &'a [Side],
    /// Diff between their resulting files.
    pub changes: Changes<'a>,
}

const UNKNOWN: &str = "–";

/// Returns the page.
pub fn compare(place: PagePlace, compared: &Compared<'_>) -> String {
    let sides = compared.sides;
    let names: Vec<_> = sides.iter().map(|side| line(&side.name)).collect();
    let title = format!("{} compared", names.join(" and "));
    let main = html! {
        h1 { (title) }
        (table(sides))
        section {
            h2 { "How the files after them differ" }
            @if compared.changes.files.is_empty() { p.empty { "Not at all." } }
            @else { (changes(&compared.changes)) }
        }
    };
    let above = [(line(compared.project).into_owned(), "index.html".to_owned())];
    page(
        place,
        PageParts {
            title: &title,
            above: &above,
            beside: [None, None],
            main,
        },
    )
}

fn table(sides: &[Side]) -> Markup {
    let row = |name: &str, cell: &dyn Fn(&Side) -> Markup| {
        html! { tr { th scope="row" { (name) } @for side in sides { td { (cell(side)) } } } }
    };
    let known = |value: Option<String>| html! { (value.as_deref().unwrap_or(UNKNOWN)) };
    html! {
        div.scroll {
            table.sides {
                thead {
                    tr { td {} @for side in sides { th scope="col" { (line(&side.name)) } } }
                }
                tbody {
                    (row("Status", &|side| badge(side.status)))
                    (row("Model", &|side| {
                        let models = side.models.iter().map(|model| line(model));
                        known(models.reduce(|all, next| format!("{all}, {next}").into())
                            .map(std::borrow::Cow::into_owned))
                    }))
                    (row("Files", &|side| html! { (side.files) }))
                    (row("Lines", &|side| known(side.added.zip(side.removed)
                        .map(|(added, removed)| format!("+{added} −{removed}")))))
                    (row("Tokens", &|side| known(side.tokens_in.zip(side.tokens_out)
                        .map(|(read, written)| {
                            format!("{} → {}", number(read), number(written))
                        }))))
                    (row("Cost", &|side| known(side.cost.map(dollars))))
                    (row("Time", &|side| known(side.seconds.map(|time| format!("{time:.1} s")))))
                }
            }
        }
    }
}
