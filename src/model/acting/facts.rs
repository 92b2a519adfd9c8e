//! Extracts facts such as cost and message from an agent's JSON lines, by rules from the settings.
//!
//! A rule is a list of words. `path=value` is a condition on the line, any other word a path into
//! it; the values at several paths are added. The last matching line wins, unless the rule starts
//! with `sum` (add up all lines) or `join` (concatenate consecutive ones).

use serde_json::Value;

use crate::model::{MOST_TOKENS, TokenUsage};
use crate::text::floor_char_boundary;

/// In bytes.
pub(super) const MAX_MESSAGE: usize = 1 << 20;
const MAX_ID: usize = 200;

const NAMES: [(&str, Fact); 7] = [
    ("conversation", Fact::Conversation),
    ("message", Fact::Message),
    ("cost", Fact::Cost),
    ("tokens_in", Fact::TokensIn),
    ("tokens_out", Fact::TokensOut),
    ("cached", Fact::Cached),
    ("version", Fact::Version),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Conversation,
    Message,
    /// In US dollars.
    Cost,
    TokensIn,
    TokensOut,
    /// Read from a cache.
    Cached,
    Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FactFold {
    Last,
    Sum,
    Join,
}

#[derive(Debug, Clone)]
pub(super) struct FactRule {
    fact: Fact,
    fold: FactFold,
    /// Paths and the values required there.
    conditions: Vec<(String, String)>,
    paths: Vec<String>,
}

impl FactRule {
    /// The error completes a sentence that starts with the model's name.
    pub(super) fn parse(name: &str, rule: &str) -> Result<FactRule, String> {
        let Some((_, fact)) = NAMES.iter().find(|(candidate, _)| *candidate == name) else {
            let names = NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            return Err(format!("`{name}` is not a fact; use one of {names}"));
        };
        let mut tokens = rule.split_whitespace().peekable();
        let fold = match tokens.peek() {
            Some(&"sum") => FactFold::Sum,
            Some(&"join") => FactFold::Join,
            _ => FactFold::Last,
        };
        if fold != FactFold::Last {
            tokens.next();
        }

        let (conditions, paths): (Vec<&str>, Vec<&str>) = tokens.partition(|w| w.contains('='));
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

    fn applies(&self, line: &Value) -> bool {
        let is_met = |(path, expected): &(String, String)| match at(line, path) {
            Some(Value::String(text)) => text == expected,
            // Numbers and booleans are compared as JSON values.
            Some(value) => {
                serde_json::from_str(expected).is_ok_and(|expected: Value| expected == *value)
            }
            None => false,
        };
        self.conditions.iter().all(is_met)
    }

    /// `None` if there are no numbers at the paths.
    fn number(&self, line: &Value) -> Option<f64> {
        let numbers = self
            .paths
            .iter()
            .filter_map(|path| at(line, path)?.as_f64());
        numbers.fold(None, |sum, next| Some(sum.unwrap_or(0.0) + next))
    }

    fn text<'l>(&self, line: &'l Value) -> Option<&'l str> {
        self.paths.iter().find_map(|path| at(line, path)?.as_str())
    }
}

#[derive(Debug, Default)]
pub(super) struct AgentFacts {
    rules: Vec<FactRule>,
    pub(super) conversation: Option<String>,
    pub(super) message: Option<String>,
    pub(super) version: Option<String>,
    pub(super) cost: Option<f64>,
    pub(super) usage: TokenUsage,
    /// The last line was a part of the message.
    is_joined: bool,
}

impl AgentFacts {
    pub(super) fn new(rules: &[FactRule]) -> AgentFacts {
        AgentFacts {
            rules: rules.to_vec(),
            ..AgentFacts::default()
        }
    }

    /// Returns the part of the message in the line.
    pub(super) fn read<'l>(&mut self, line: &'l Value) -> Option<&'l str> {
        let mut message = None;
        for rule in std::mem::take(&mut self.rules) {
            if rule.applies(line) {
                message = message.or(self.take(&rule, line));
            }
            // Taken out only so that `take` can borrow `self`.
            self.rules.push(rule);
        }

        self.is_joined = message.is_some();
        message
    }

    fn take<'l>(&mut self, rule: &FactRule, line: &'l Value) -> Option<&'l str> {
        match rule.fact {
            Fact::Message => {
                let text = rule.text(line)?;
                let is_next = rule.fold == FactFold::Join && self.is_joined;
                add_text(&mut self.message, is_next, text);
                return Some(text);
            }
            Fact::Conversation => {
                let id = rule.text(line).filter(|id| is_id(id));
                // Keep the earlier id if this line has none.
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

/// An id becomes an argument of a command.
pub(super) fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic();
    // A leading dash would be an option.
    !id.is_empty() && id.len() <= MAX_ID && !id.starts_with('-') && id.chars().all(is_plain)
}

pub(super) fn bound(message: &mut String) {
    message.truncate(floor_char_boundary(message, MAX_MESSAGE));
}

fn add_text(message: &mut Option<String>, is_next: bool, text: &str) {
    let message = message.get_or_insert_default();
    if !is_next {
        message.clear();
    }
    if message.len() < MAX_MESSAGE {
        message.push_str(text);
        bound(message);
    }
}

/// `false` if there is no valid number.
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

fn add_tokens(tokens: &mut u64, rule: &FactRule, line: &Value) {
    let mut sum = *tokens as f64;
    if add(&mut sum, rule, line) {
        *tokens = (sum as u64).min(MOST_TOKENS);
    }
}

/// By a dotted path of keys and indexes.
fn at<'l>(line: &'l Value, path: &str) -> Option<&'l Value> {
    path.split('.').try_fold(line, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let apart = [lines[0], lines[2], lines[1]];
        check("join a.b", &apart, Some("two"));
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
