//! Parses the resource list of an `input.md`.
//!
//! Skips fenced blocks, because resource contents can contain the same headings.

const MAX_SUMMARY_RESOURCES: usize = 10_000;

/// A resource in the model's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceTokens {
    /// A path, a URL, or the name of an artifact.
    pub name: String,
    /// Number of tokens. `None` if the resource was not text.
    pub tokens: Option<u64>,
    /// Why the resource was not text, as the input words it.
    pub note: Option<String>,
}

/// Returns the resources of the section "Context Summary", in order.
pub fn read_summary(input: &str) -> Vec<ResourceTokens> {
    let mut fence = 0;
    let mut is_inside = false;
    let mut entries = Vec::new();
    for line in input.lines() {
        let run = line.bytes().take_while(|byte| *byte == b'`').count();
        if fence > 0 {
            if run >= fence && run == line.len() {
                fence = 0;
            }
            continue;
        }
        if run >= 3 {
            fence = run;
            continue;
        }

        if line.starts_with("## ") {
            if is_inside {
                break;
            }
            is_inside = line.ends_with(" Context Summary");
        } else if is_inside && entries.len() < MAX_SUMMARY_RESOURCES {
            entries.extend(parse_resource(line));
        }
    }

    entries
}

/// Parses a line such as `- [a.md](/a.md) (5 tokens)`.
fn parse_resource(line: &str) -> Option<ResourceTokens> {
    let tail = line.strip_prefix("- [")?;
    let (link, note) = tail.rsplit_once(" (")?;
    let note = note.strip_suffix(')')?;
    let (name, _) = link.split_once("](")?;
    let tokens = note.strip_suffix(" tokens").and_then(|n| n.parse().ok());
    Some(ResourceTokens {
        name: name.to_owned(),
        tokens,
        note: tokens.is_none().then(|| note.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{InputResource, ListScope, Material, ResourceBody, render};
    use super::*;

    /// Compares each resource by name and by its tokens or note.
    #[track_caller]
    fn check(input: &str, expected: &[(&str, &str)]) {
        let actual = read_summary(input);
        let actual: Vec<(&str, String)> = actual
            .iter()
            .map(|one| {
                let tokens = one.tokens.map(|tokens| tokens.to_string());
                (
                    one.name.as_str(),
                    tokens.or(one.note.clone()).unwrap_or_default(),
                )
            })
            .collect();
        let actual: Vec<(&str, &str)> =
            actual.iter().map(|(name, n)| (*name, n.as_str())).collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn what_an_input_lists_is_read_back() {
        let entry = |resource: &str, body, tokens| InputResource {
            scope: ListScope::Turn,
            resource: resource.to_owned(),
            body,
            tokens,
        };
        let material = Material {
            memos: Some("## 4. Context Summary\n- [not this](/x) (9 tokens)\n".to_owned()),
            resources: vec![
                entry("src/a b.rs", ResourceBody::Text("x".to_owned()), 1),
                entry("https://example.org/(1)", ResourceBody::Missing, 0),
                entry("logo.png", ResourceBody::Binary { bytes: 3 }, 0),
            ],
            ..Material::default()
        };
        check(
            &render(&material),
            &[
                ("src/a b.rs", "1"),
                ("https://example.org/(1)", "missing"),
                ("logo.png", "binary"),
            ],
        );
    }

    #[test]
    fn an_input_of_another_form_lists_nothing() {
        check("", &[]);
        check("# Anything\n- [a](/a) (1 tokens)\n", &[]);
        check("## 4. Context Summary\n- [a] (x\n- a (1 tokens)\n", &[]);
        check("````\n## 4. Context Summary\n- [a](/a) (1 tokens)\n", &[]);
    }
}
