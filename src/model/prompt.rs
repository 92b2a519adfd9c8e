//! System prompts of agents: built-in ones, and a project's own that replace them.
//!
//! Placeholders in a prompt: `{{format}}` expands to the description of the plan format,
//! `{{agent}}` to the agent's name. `{{research}}a{{else}}b{{/research}}` expands to `a` if a
//! search engine is configured, else to `b`.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::near::nearest;

/// Shared by all prompts.
const FORMAT: &str = include_str!("../../prompts/format.xml");
/// For questions, which are answered without a plan.
pub const ANSWERING: &str = include_str!("../../prompts/answer.xml");
/// For models that edit files themselves.
pub const ACTING: &str = include_str!("../../prompts/acting.xml");
const OPEN: &str = "{{research}}";
const ELSE: &str = "{{else}}";
const CLOSE: &str = "{{/research}}";
const BUILT_IN: [(&str, &str); 6] = [
    ("architect", include_str!("../../prompts/architect.xml")),
    ("assistant", include_str!("../../prompts/assistant.xml")),
    ("debugger", include_str!("../../prompts/debugger.xml")),
    ("developer", include_str!("../../prompts/developer.xml")),
    ("pathfinder", include_str!("../../prompts/pathfinder.xml")),
    ("prototyper", include_str!("../../prompts/prototyper.xml")),
];

/// Fully expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// In lower case.
    pub name: String,
    /// One line, from the prompt's first `<title>`.
    pub description: String,
    pub text: String,
    pub origin: PromptOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptOrigin {
    BuiltIn,
    /// From `.teddy/prompts/`.
    Project,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownAgent {
    #[error("there is no agent `{name}`; available: {available}")]
    Missing {
        name: String,
        available: String,
        near: Option<String>,
    },
    /// Only the repository has it, which is not trusted.
    #[error(
        "the agent `{name}` is not trusted: only this repository has it, in `.teddy/prompts/{name}.xml`"
    )]
    Untrusted { name: String },
}

#[derive(Debug, Clone, Default)]
pub struct Prompts {
    /// By lower-case name.
    project: BTreeMap<String, String>,
    /// Lower-case names of project prompts that must not be used.
    untrusted: BTreeSet<String>,
    searches: bool,
}

impl Prompts {
    /// `project` has file names without `.xml`, and contents; the caller has checked that they are
    /// trusted.
    pub fn new(project: impl IntoIterator<Item = (String, String)>, searches: bool) -> Prompts {
        Prompts {
            project: project
                .into_iter()
                .map(|(name, text)| (name.to_lowercase(), text))
                .collect(),
            untrusted: BTreeSet::new(),
            searches,
        }
    }

    #[must_use]
    pub fn without_trust(mut self, names: impl IntoIterator<Item = String>) -> Prompts {
        self.untrusted
            .extend(names.into_iter().map(|name| name.to_lowercase()));
        self
    }

    pub fn untrusted(&self) -> BTreeSet<String> {
        let trusted = self.names();
        let names = self.untrusted.iter();
        names
            .filter(|name| !trusted.contains(&name.as_str()))
            .cloned()
            .collect()
    }

    /// Ignores case. Project prompts override built-in ones.
    pub fn find(&self, name: &str) -> Result<Prompt, UnknownAgent> {
        self.fill_in(name, self.searches)
    }

    fn fill_in(&self, name: &str, searches: bool) -> Result<Prompt, UnknownAgent> {
        let key = name.trim().to_lowercase();
        let project = self
            .project
            .get(&key)
            .map(|text| (text.as_str(), PromptOrigin::Project));
        let built_in = || {
            BUILT_IN
                .iter()
                .find(|(candidate, _)| *candidate == key)
                .map(|(_, text)| (*text, PromptOrigin::BuiltIn))
        };

        match project.or_else(built_in) {
            Some((text, origin)) => Ok(make(&key, &expand_template(text, searches), origin)),
            None if self.untrusted.contains(&key) => Err(UnknownAgent::Untrusted { name: key }),
            None => Err(UnknownAgent::Missing {
                name: name.to_owned(),
                available: self.names().join(", "),
                near: nearest(&key, self.names()).map(str::to_owned),
            }),
        }
    }

    /// Replacement for a prompt stored in a session if a search engine has since been configured or
    /// removed: a model uses what its prompt teaches. `None` if the stored prompt is current, or if
    /// the user edited it.
    pub fn update_saved(&self, saved: &str) -> Option<String> {
        // The prompt of the opposite setting, unless the user edited it.
        let is_saved = |name: &&&str| {
            let other = self.fill_in(name, !self.searches);
            other.is_ok_and(|prompt| prompt.text == saved)
        };
        let names = self.names();
        let now = self.find(names.iter().find(is_saved)?).ok()?;
        (now.text != saved).then_some(now.text)
    }

    /// Sorted by name.
    pub fn all(&self) -> Vec<Prompt> {
        self.names()
            .iter()
            .filter_map(|name| self.find(name).ok())
            .collect()
    }

    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = BUILT_IN
            .iter()
            .map(|(name, _)| *name)
            .chain(self.project.keys().map(String::as_str))
            .collect();
        names.sort_unstable();
        names.dedup();

        names
    }
}

fn make(name: &str, text: &str, origin: PromptOrigin) -> Prompt {
    let agent = title_case(name);
    let text = text.replace("{{agent}}", &agent);
    Prompt {
        name: name.to_owned(),
        description: element(&text, "title")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        text,
        origin,
    }
}

/// Expands `{{format}}` and the parts that depend on a search engine.
fn expand_template(text: &str, searches: bool) -> String {
    let text = text.replace("{{format}}", FORMAT.trim_end());
    let (mut remaining, mut chosen) = (text.as_str(), String::new());
    while let Some((before, from)) = remaining.split_once(OPEN)
        && let Some((parts, after)) = from.split_once(CLOSE)
    {
        let (with, without) = parts.split_once(ELSE).unwrap_or((parts, ""));
        chosen += before;
        chosen += if searches { with } else { without };
        remaining = after;
    }

    chosen + remaining
}

/// Contents of the first `<name>` element.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, tail) = text.split_once(&format!("<{name}>"))?;
    Some(tail.split_once(&format!("</{name}>"))?.0)
}

fn title_case(name: &str) -> String {
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Result<(&str, PromptOrigin), &str>) {
        let prompts = Prompts::new(
            [
                ("Assistant".into(), "<title> Ours </title>{{agent}}".into()),
                ("poet".into(), "no title".into()),
            ],
            false,
        );
        let actual = prompts.find(name).map_err(|error| error.to_string());
        let actual = actual
            .as_ref()
            .map(|prompt| (prompt.description.as_str(), prompt.origin))
            .map_err(String::as_str);
        assert_eq!(actual, expected);
    }

    fn with_and_without_search() -> Vec<Prompt> {
        let all = |searches| Prompts::new([], searches).all();
        [all(true), all(false)].concat()
    }

    #[test]
    fn promise_a3_a_prompt_speaks_of_research_only_where_it_can_work() {
        for (searches, expected) in [(true, true), (false, false)] {
            for prompt in Prompts::new([], searches).all() {
                let speaks = prompt.text.contains("RESEARCH");
                assert_eq!(speaks, expected, "{}", prompt.name);
            }
        }
    }

    #[test]
    fn promise_a3_a_kept_prompt_follows_the_search_engine() {
        let own = || {
            [(
                "poet".to_owned(),
                "{{research}}look{{else}}guess{{/research}} it".to_owned(),
            )]
        };
        let check = |searches: bool, saved: &str, expected: Option<&str>| {
            let actual = Prompts::new(own(), searches).update_saved(saved);
            assert_eq!(actual.as_deref(), expected, "{saved}");
        };
        check(true, "guess it", Some("look it"));
        check(false, "look it", Some("guess it"));
        check(true, "look it", None);
        check(true, "something else", None);
        let developer = |searches| Prompts::new([], searches).find("developer").unwrap().text;
        check(true, &developer(false), Some(&developer(true)));
    }

    #[test]
    fn the_projects_prompt_takes_the_place_of_ours_whatever_the_case() {
        check("ASSISTANT", Ok(("Ours", PromptOrigin::Project)));
        check("poet", Ok(("", PromptOrigin::Project)));
        check(
            "Developer",
            Ok((
                "Build one slice, tests first, in small and predictable steps",
                PromptOrigin::BuiltIn,
            )),
        );
    }

    #[test]
    fn an_unknown_name_lists_those_that_there_are() {
        let available = "architect, assistant, debugger, developer, pathfinder, poet, prototyper";
        check(
            "../poet",
            Err(&format!(
                "there is no agent `../poet`; available: {available}"
            )),
        );
    }

    #[test]
    fn promise_c4_an_agent_without_trust_is_named_as_such() {
        let prompts =
            Prompts::new([], false).without_trust(["Poet".to_owned(), "developer".to_owned()]);
        let actual = prompts.find("poet").map_err(|error| error.to_string());
        let expected = "the agent `poet` is not trusted: only this repository has it, in `.teddy/prompts/poet.xml`";
        assert_eq!(actual, Err(expected.to_owned()));
        assert_eq!(prompts.untrusted(), BTreeSet::from(["poet".to_owned()]));
        let built_in = prompts.find("developer").map(|prompt| prompt.origin);
        assert_eq!(built_in, Ok(PromptOrigin::BuiltIn));
    }

    #[test]
    fn every_prompt_has_a_description_and_no_placeholder_left() {
        for prompt in with_and_without_search() {
            assert!(
                !prompt.description.is_empty() && !prompt.description.contains('\n'),
                "{}",
                prompt.name
            );
            assert!(!prompt.text.contains("{{"), "{}", prompt.name);
            assert!(
                prompt
                    .text
                    .contains(&format!("- **Agent:** {}", title_case(&prompt.name))),
                "{}",
                prompt.name
            );
        }
    }

    #[test]
    fn every_prompt_has_the_parts_of_its_structure_in_order() {
        for prompt in with_and_without_search() {
            let parts = [
                "<role>",
                "<instructions>",
                "<title>",
                "<workflow>",
                "<general_rules>",
                "<output_formatting>",
                "<action_formats>",
                "<required_response_format>",
            ];
            let positions: Vec<Option<usize>> =
                parts.iter().map(|part| prompt.text.find(part)).collect();
            assert!(
                positions.iter().all(Option::is_some) && positions.is_sorted(),
                "{}: {positions:?}",
                prompt.name
            );
        }
    }

    #[test]
    fn every_prompt_is_well_formed() {
        let tag = regex::Regex::new("<(/?)([a-z_]+)[^<>]*>").unwrap();
        for prompt in with_and_without_search() {
            let mut open = Vec::new();
            for captures in tag.captures_iter(&prompt.text) {
                let name = captures[2].to_owned();
                if captures[1].is_empty() {
                    open.push(name)
                } else {
                    assert_eq!(open.pop(), Some(name), "{}", prompt.name)
                }
            }
            assert_eq!(open, Vec::<String>::new(), "{}", prompt.name);
            let loose = tag.replace_all(&prompt.text, "");
            assert!(
                !loose.contains(['<', '>', '&']),
                "{}: {:?}",
                prompt.name,
                loose.find(['<', '>', '&'])
            );
        }
    }

    #[test]
    fn all_nine_actions_are_taught() {
        for action in [
            "CREATE",
            "READ",
            "EDIT",
            "EXECUTE",
            "RESEARCH",
            "CHAT_WITH_USER",
            "INVOKE",
            "CONCLUDE",
            "PRUNE",
        ] {
            assert!(
                FORMAT.contains(&format!("<action name=\"{action}\">"))
                    && FORMAT.contains(&format!("### `{action}`")),
                "{action}"
            );
        }
    }
}
