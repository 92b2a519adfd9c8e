//! What an agent that is a command tells of itself: found in the JSON lines that it prints, by
//! paths that the configuration gives.
//!
//! A fact is written as words. A word with `=` is a condition on the line, every other word is a
//! path into it; several paths are added up. The last line that has it counts; with `sum` in
//! front all of them are added up, with `join` all of them are strung together.

use serde_json::Value;

use crate::model::TokenUsage;

/// The longest message that is kept, in bytes.
pub(super) const MAX_MESSAGE: usize = 1 << 20;
/// The longest id of a conversation.
const MAX_ID: usize = 200;

/// The names of facts, and what they are.
const NAMES: [(&str, Fact); 7] = [
    ("conversation", Fact::Conversation),
    ("message", Fact::Message),
    ("cost", Fact::Cost),
    ("tokens_in", Fact::TokensIn),
    ("tokens_out", Fact::TokensOut),
    ("cached", Fact::Cached),
    ("version", Fact::Version),
];

/// Something that an agent tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    /// What the conversation is called.
    Conversation,
    /// Its message.
    Message,
    /// What it cost, in dollars.
    Cost,
    /// The tokens that were sent.
    TokensIn,
    /// The tokens of the answers.
    TokensOut,
    /// Those that came from a cache.
    Cached,
    /// Its version.
    Version,
}

/// What several lines that have a fact make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FactFold {
    /// The last one.
    Last,
    /// Their sum.
    Sum,
    /// One behind the other.
    Join,
}

/// Where a fact is.
#[derive(Debug, Clone)]
pub(super) struct FactRule {
    /// The fact.
    fact: Fact,
    /// What several lines make of it.
    fold: FactFold,
    /// What the line must have, and where.
    conditions: Vec<(String, String)>,
    /// Where it is.
    paths: Vec<String>,
}

impl FactRule {
    /// Reads the rule of a fact.
    ///
    /// # Errors
    /// What is wrong with it, to be put behind the model's name.
    pub(super) fn parse(name: &str, rule: &str) -> Result<FactRule, String> {
        let Some((_, fact)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let names = NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            return Err(format!("`{name}` is not a fact; use one of {names}"));
        };
        let mut words = rule.split_whitespace().peekable();
        let fold = match words.peek() {
            Some(&"sum") => FactFold::Sum,
            Some(&"join") => FactFold::Join,
            _ => FactFold::Last,
        };
        if fold != FactFold::Last {
            words.next();
        }

        let (conditions, paths): (Vec<&str>, Vec<&str>) = words.partition(|w| w.contains('='));
        if paths.is_empty() {
            return Err(format!("the fact `{name}` has no path in `{rule}`"));
        }
        Ok(FactRule {
            fact: *fact,
            fold,
            conditions: conditions
                .iter()
                .filter_map(|word| word.split_once('='))
                .map(|(path, value)| (path.to_owned(), value.to_owned()))
                .collect(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        })
    }

    /// Returns whether a line is one of those that have it.
    fn applies(&self, line: &Value) -> bool {
        let is_met = |(path, wanted): &(String, String)| match at(line, path) {
            Some(Value::String(text)) => text == wanted,
            Some(value) => serde_json::from_str(wanted).is_ok_and(|wanted: Value| wanted == *value),
            None => false,
        };
        self.conditions.iter().all(is_met)
    }

    /// Returns the sum of what is at the paths; nothing where nothing is.
    fn number(&self, line: &Value) -> Option<f64> {
        let found = self
            .paths
            .iter()
            .filter_map(|path| at(line, path)?.as_f64());
        found.fold(None, |sum, next| Some(sum.unwrap_or(0.0) + next))
    }

    /// Returns the first text that is at one of the paths.
    fn text<'l>(&self, line: &'l Value) -> Option<&'l str> {
        self.paths.iter().find_map(|path| at(line, path)?.as_str())
    }
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct AgentFacts {
    /// Where to look.
    rules: Vec<FactRule>,
    /// The conversation.
    pub(super) conversation: Option<String>,
    /// The message.
    pub(super) message: Option<String>,
    /// The version.
    pub(super) version: Option<String>,
    /// The dollars.
    pub(super) cost: Option<f64>,
    /// The tokens.
    pub(super) usage: TokenUsage,
}

impl AgentFacts {
    /// Returns nothing yet.
    pub(super) fn new(rules: &[FactRule]) -> AgentFacts {
        AgentFacts {
            rules: rules.to_vec(),
            ..AgentFacts::default()
        }
    }

    /// Looks at a line; returns the piece of the message that is in it.
    pub(super) fn read<'l>(&mut self, line: &'l Value) -> Option<&'l str> {
        let mut said = None;
        for rule in std::mem::take(&mut self.rules) {
            if rule.applies(line) {
                said = said.or(self.take(&rule, line));
            }
            self.rules.push(rule);
        }

        said
    }

    /// Takes a fact out of a line; returns what of it is said.
    fn take<'l>(&mut self, rule: &FactRule, line: &'l Value) -> Option<&'l str> {
        match rule.fact {
            Fact::Message => {
                let text = rule.text(line)?;
                add_text(&mut self.message, rule.fold, text);
                return Some(text);
            }
            Fact::Conversation => {
                let id = rule.text(line).filter(|id| is_id(id));
                self.conversation = id.map(str::to_owned).or(self.conversation.take());
            }
            Fact::Version => {
                let version = rule.text(line).map(str::to_owned);
                self.version = version.or(self.version.take());
            }
            Fact::Cost => {
                let mut cost = self.cost.unwrap_or_default();
                if add(&mut cost, rule, line) {
                    self.cost = Some(cost);
                }
            }
            Fact::TokensIn => add_tokens(&mut self.usage.input, rule, line),
            Fact::TokensOut => add_tokens(&mut self.usage.output, rule, line),
            Fact::Cached => add_tokens(&mut self.usage.cached, rule, line),
        }

        None
    }
}

/// Tells whether a text can be the id of a conversation, which becomes an argument.
pub(super) fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic();
    !id.is_empty() && id.len() <= MAX_ID && !id.starts_with('-') && id.chars().all(is_plain)
}

/// Cuts a message where it is too long.
pub(super) fn bound(message: &mut String) {
    if message.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE)
            .rev()
            .find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
    }
}

/// Adds a text to what there is.
fn add_text(whole: &mut Option<String>, fold: FactFold, text: &str) {
    let whole = whole.get_or_insert_default();
    if fold != FactFold::Join {
        whole.clear();
    }
    if whole.len() < MAX_MESSAGE {
        whole.push_str(text);
        bound(whole);
    }
}

/// Adds a number to what there is; returns whether there was one that can be one.
fn add(sum: &mut f64, rule: &FactRule, line: &Value) -> bool {
    let Some(number) = rule.number(line).filter(|n| n.is_finite() && *n >= 0.0) else {
        return false;
    };
    *sum = match rule.fold {
        FactFold::Sum => *sum + number,
        FactFold::Last | FactFold::Join => number,
    };
    true
}

/// Adds a number of tokens to what there is.
fn add_tokens(tokens: &mut u64, rule: &FactRule, line: &Value) {
    let mut sum = *tokens as f64;
    if add(&mut sum, rule, line) {
        *tokens = sum as u64;
    }
}

/// Returns what is at a path of keys and positions with dots between.
fn at<'l>(line: &'l Value, path: &str) -> Option<&'l Value> {
    path.split('.').try_fold(line, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads lines for one fact.
    fn read(name: &str, rule: &str, lines: &[&str]) -> AgentFacts {
        let mut facts = AgentFacts::new(&[FactRule::parse(name, rule).unwrap()]);
        for line in lines {
            facts.read(&serde_json::from_str(line).unwrap());
        }
        facts
    }

    #[track_caller]
    fn check(rule: &str, lines: &[&str], message: Option<&str>) {
        let facts = read("message", rule, lines);
        assert_eq!(facts.message.as_deref(), message);
    }

    #[test]
    fn the_last_line_that_has_it_counts() {
        let lines = [r#"{"a":{"b":"one"}}"#, r#"{"a":{"b":"two"}}"#, r#"{"a":3}"#];
        check("a.b", &lines, Some("two"));
        check("join a.b", &lines, Some("onetwo"));
        check("a.c", &lines, None);
        check("x.0.b a.b", &lines, Some("two"));
    }

    #[test]
    fn a_condition_chooses_lines() {
        let lines = [
            r#"{"role":"user","t":"q"}"#,
            r#"{"role":"it","n":1,"t":"a"}"#,
        ];
        check("role=user t", &lines, Some("q"));
        check("n=1 role=it t", &lines, Some("a"));
        check("n=2 t", &lines, None);
    }

    #[test]
    fn numbers_are_added_up() {
        let lines = [
            r#"{"u":{"i":1,"c":2},"$":0.5}"#,
            r#"{"u":{"i":10},"$":0.25}"#,
        ];
        assert_eq!(read("tokens_in", "u.i u.c", &lines).usage.input, 10);
        assert_eq!(read("tokens_in", "sum u.i u.c", &lines).usage.input, 13);
        assert_eq!(read("cost", "sum $", &lines).cost, Some(0.75));
        assert_eq!(read("cost", "x", &lines).cost, None);
        assert_eq!(read("cost", "$", &[r#"{"$":-1}"#]).cost, None);
    }

    #[test]
    fn an_id_that_would_be_an_option_is_none() {
        let id = |line: &str| read("conversation", "id", &[line]).conversation;
        assert_eq!(id(r#"{"id":"a-1"}"#).as_deref(), Some("a-1"));
        assert_eq!(id(r#"{"id":"--yolo"}"#), None);
        assert_eq!(id(r#"{"id":"a b"}"#), None);
    }
}
