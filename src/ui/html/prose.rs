//! Renders texts of users and models: Markdown, plain text, command output.

use maud::{Markup, PreEscaped, html};

use crate::text::markdown::html::html as rendered;
use crate::text::visible::{strip_ansi, visible_text};

/// Headings of a text start at this level, below those of the page.
const LEVEL: u8 = 3;

/// Renders Markdown, or plain text if it cannot be rendered.
pub fn markdown(text: &str) -> Markup {
    // Safe to embed: the renderer turns raw HTML into text and allows only safe links.
    match rendered(&visible_text(text), LEVEL) {
        Some(rendered) => html! { div.prose { (PreEscaped(rendered)) } },
        None => plain(text),
    }
}

/// Renders a text verbatim.
pub fn plain(text: &str) -> Markup {
    html! { pre.plain tabindex="0" { code { (visible_text(text)) } } }
}

/// Renders command output without its escape sequences.
pub fn output(text: &str) -> Markup {
    plain(&strip_ansi(text))
}

/// Renders a typed message, keeping its line breaks.
pub fn message(text: &str) -> Markup {
    html! { p.message { (visible_text(text.trim_end())) } }
}
