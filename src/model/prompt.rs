//! Agents' prompts: those in the program, and those of the project that take their place.
//!
//! A prompt may hold two placeholders: `{{format}}` becomes the plan format that our parser reads,
//! `{{agent}}` the agent's name.

use std::collections::BTreeMap;

/// The part on the plan format, which all prompts share.
const FORMAT: &str = include_str!("../../prompts/format.xml");
/// The prompts in the program.
const BUILT_IN: [(&str, &str); 6] = [
    ("architect", include_str!("../../prompts/architect.xml")),
    ("assistant", include_str!("../../prompts/assistant.xml")),
    ("debugger", include_str!("../../prompts/debugger.xml")),
    ("developer", include_str!("../../prompts/developer.xml")),
    ("pathfinder", include_str!("../../prompts/pathfinder.xml")),
    ("prototyper", include_str!("../../prompts/prototyper.xml")),
];

/// An agent's prompt, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The agent's name, in lower case.
    pub name: String,
    /// What the agent is for: the text of the prompt's first `<title>`.
    pub description: String,
    /// The text, its placeholders filled in.
    pub text: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a prompt comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The program.
    BuiltIn,
    /// The project's `.teddy/prompts/`.
    Project,
}

/// No agent has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent `{name}`; there are {available}")]
pub struct UnknownAgent {
    /// The name that was asked for.
    pub name: String,
    /// All names that there are.
    pub available: String,
}

/// All prompts of a project.
#[derive(Debug, Clone, Default)]
pub struct Prompts {
    /// The project's own, by name in lower case.
    project: BTreeMap<String, String>,
}

impl Prompts {
    /// Takes the project's own prompts: the name of each file without `.xml`, and its text. Whoever
    /// calls has checked the trust.
    pub fn new(project: impl IntoIterator<Item = (String, String)>) -> Prompts {
        Prompts {
            project: project
                .into_iter()
                .map(|(name, text)| (name.to_lowercase(), text))
                .collect(),
        }
    }

    /// Returns an agent's prompt; upper and lower case are the same. The project's own comes first.
    ///
    /// # Errors
    /// [`UnknownAgent`], which lists the names.
    pub fn find(&self, name: &str) -> Result<Prompt, UnknownAgent> {
        let wanted = name.trim().to_lowercase();
        let project = self
            .project
            .get(&wanted)
            .map(|text| (text.as_str(), Origin::Project));
        let built_in = || {
            BUILT_IN
                .iter()
                .find(|(known, _)| *known == wanted)
                .map(|(_, text)| (*text, Origin::BuiltIn))
        };
        match project.or_else(built_in) {
            Some((text, origin)) => Ok(make(&wanted, text, origin)),
            None => Err(UnknownAgent {
                name: name.to_owned(),
                available: self.names().join(", "),
            }),
        }
    }

    /// Returns all prompts, by name.
    pub fn all(&self) -> Vec<Prompt> {
        self.names()
            .iter()
            .filter_map(|name| self.find(name).ok())
            .collect()
    }

    /// Returns all names, sorted.
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

/// Fills a prompt in.
fn make(name: &str, text: &str, origin: Origin) -> Prompt {
    let agent = title_case(name);
    let text = text
        .replace("{{format}}", FORMAT.trim_end())
        .replace("{{agent}}", &agent);
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

/// Returns the text of the first element of a name.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// Writes a name as plans do: `pathfinder` as `Pathfinder`.
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

    fn check(name: &str, expected: Result<(&str, Origin), &str>) {
        let prompts = Prompts::new([
            ("Assistant".into(), "<title> Ours </title>{{agent}}".into()),
            ("poet".into(), "no title".into()),
        ]);
        let found = prompts.find(name).map_err(|error| error.to_string());
        let found = found
            .as_ref()
            .map(|prompt| (prompt.description.as_str(), prompt.origin))
            .map_err(String::as_str);
        assert_eq!(found, expected);
    }

    #[test]
    fn the_projects_prompt_takes_the_place_of_ours_whatever_the_case() {
        check("ASSISTANT", Ok(("Ours", Origin::Project)));
        check("poet", Ok(("", Origin::Project)));
        check(
            "Developer",
            Ok((
                "Build one slice, tests first, in small steps that can be foretold",
                Origin::BuiltIn,
            )),
        );
    }

    #[test]
    fn an_unknown_name_lists_those_that_there_are() {
        let available = "architect, assistant, debugger, developer, pathfinder, poet, prototyper";
        check(
            "../poet",
            Err(&format!(
                "there is no agent `../poet`; there are {available}"
            )),
        );
    }

    #[test]
    fn every_prompt_has_a_description_and_no_placeholder_left() {
        for prompt in Prompts::default().all() {
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
        for prompt in Prompts::default().all() {
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
            let places: Vec<Option<usize>> =
                parts.iter().map(|part| prompt.text.find(part)).collect();
            assert!(
                places.iter().all(Option::is_some) && places.is_sorted(),
                "{}: {places:?}",
                prompt.name
            );
        }
    }

    #[test]
    fn every_prompt_is_well_formed() {
        let tag = regex::Regex::new("<(/?)([a-z_]+)[^<>]*>").unwrap();
        for prompt in Prompts::default().all() {
            let mut open = Vec::new();
            for found in tag.captures_iter(&prompt.text) {
                let name = found[2].to_owned();
                if found[1].is_empty() {
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
