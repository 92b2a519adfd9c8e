//! Renders texts of users and models: Markdown, plain text, command output.

use maud::{Markup, PreEscaped, html};

use crate::text::markdown::html::render_html as rendered;
use crate::text::sanitize::{sanitize_text, strip_ansi};

/// Headings of a text start at this level, below those of the page.
const HEADING_LEVEL: u8 = 3;

/// Renders Markdown, or plain text if it cannot be rendered.
pub fn render_markdown(text: &str) -> Markup {
    // Safe to embed: the renderer turns raw HTML into text and allows only safe links.
    match rendered(&sanitize_text(text), HEADING_LEVEL) {
        Some(rendered) => html! { div.prose { (PreEscaped(rendered)) } },
        None => render_plain(text),
    }
}

/// Renders a text verbatim.
pub fn render_plain(text: &str) -> Markup {
    html! { pre.plain tabindex="0" { code { (sanitize_text(text)) } } }
}

/// Renders command output without its escape sequences.
pub fn render_output(text: &str) -> Markup {
    render_plain(&strip_ansi(text))
}

/// Renders a typed message, keeping its line breaks.
pub fn render_message(text: &str) -> Markup {
    html! { p.message { (sanitize_text(text.trim_end())) } }
}
