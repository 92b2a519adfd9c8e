//! Renders untrusted Markdown as inert HTML.
//!
//! Raw HTML is escaped. Only `http`, `https` and `mailto` links are kept. Images are replaced by
//! their descriptions, because loading one would contact its server.

use std::time::Instant;

use comrak::nodes::{AstNode, NodeValue};
use comrak::{Arena, Options, format_html, try_parse_document};

use super::{DEADLINE, MAX_NESTING};

/// Renders a text as HTML with headings from `level` on. `None` if that takes too long or the
/// nesting is too deep.
pub fn render_html(text: &str, level: u8) -> Option<String> {
    let arena = Arena::new();
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.autolink = true;
    options.render.escape = true;

    let started = Instant::now();
    let too_late = || started.elapsed() > DEADLINE;
    let root = try_parse_document(&arena, text, &options, &too_late).ok()?;
    let nodes: Vec<&AstNode<'_>> = root.descendants().collect();
    if nodes
        .iter()
        .any(|node| node.ancestors().count() > MAX_NESTING)
    {
        return None;
    }
    // Raw HTML is escaped by `options.render.escape`, so only links and images can have an effect.
    for node in nodes {
        disarm_links(node, level);
    }

    let mut html = String::new();
    format_html(root, &options, &mut html).ok()?;
    Some(html)
}

/// Removes an unsafe link or image, but keeps its content.
fn disarm_links<'a>(node: &'a AstNode<'a>, first: u8) {
    let is_kept = match &mut node.data.borrow_mut().value {
        NodeValue::Heading(heading) => {
            heading.level = (heading.level + first - 1).min(6);
            true
        }
        NodeValue::Link(link) => is_link_address(&link.url),
        NodeValue::Image(_) => false,
        _ => true,
    };
    if is_kept {
        return;
    }

    while let Some(child) = node.first_child() {
        node.insert_before(child);
    }
    node.detach();
}

fn is_link_address(url: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace();
    let lower = url.to_ascii_lowercase();
    let starts = ["http://", "https://", "mailto:"];
    starts.iter().any(|start| lower.starts_with(start)) && url.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render_html(text, 3).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn what_somebody_wrote_does_nothing() {
        check(
            "<script>alert(1)</script>\n",
            "&lt;script&gt;alert(1)&lt;/script&gt;\n",
        );
        check(
            "a <b onclick=x>b</b>\n",
            "<p>a &lt;b onclick=x&gt;b&lt;/b&gt;</p>\n",
        );
        check("[a](javascript:alert(1))\n", "<p>a</p>\n");
        check("[a](data:text/html,x) [*b*](/b)\n", "<p>a <em>b</em></p>\n");
        check(
            "![*a* b](https://example.org/x.png)\n",
            "<p><em>a</em> b</p>\n",
        );
        check(
            "[a](https://example.org/?\"><x>)\n",
            "<p><a href=\"https://example.org/?%22%3E%3Cx%3E\">a</a></p>\n",
        );
        check(
            "```\"><script>\nx\n```\n",
            "<pre><code class=\"language-&quot;&gt;&lt;script&gt;\">x\n</code></pre>\n",
        );
    }

    #[test]
    fn what_somebody_meant_is_seen() {
        check(
            "# A\n\n- [x] b\n",
            "<h3>A</h3>\n<ul>\n<li><input type=\"checkbox\" checked=\"\" disabled=\"\" /> b</li>\n</ul>\n",
        );
        check("###### A\n", "<h6>A</h6>\n");
        check(
            "<https://example.org>\n",
            "<p><a href=\"https://example.org\">https://example.org</a></p>\n",
        );
    }

    #[test]
    fn what_nobody_means_is_left_alone() {
        assert_eq!(render_html(&">".repeat(5000), 3), None);
    }
}
