//! Texts of people and models: Markdown laid out, everything else as it is.

use maud::{Markup, PreEscaped, html};

use crate::text::markdown::html::html as rendered;
use crate::text::visible::{strip_ansi, visible_text};

/// The level at which the headings of a text begin, below those of the page.
const LEVEL: u8 = 3;

/// Returns a text laid out as the Markdown that it is.
pub fn markdown(text: &str) -> Markup {
    match rendered(&visible_text(text), LEVEL) {
        Some(rendered) => html! { div.prose { (PreEscaped(rendered)) } },
        None => plain(text),
    }
}

/// Returns a text as it is.
pub fn plain(text: &str) -> Markup {
    html! { pre.plain tabindex="0" { code { (visible_text(text)) } } }
}

/// Returns the output of a command, without colours and moves of a cursor.
pub fn output(text: &str) -> Markup {
    plain(&strip_ansi(text))
}

/// Returns what somebody typed: its lines stay lines.
pub fn message(text: &str) -> Markup {
    html! { p.message { (visible_text(text.trim_end())) } }
}
