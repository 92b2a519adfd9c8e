//! Finds, adds and removes our entry in an agent's settings. Pure; all other bytes are preserved.

use anyhow::Context as _;
use serde_json::{Value, json};
use toml_edit::{Array, DocumentMut, Item};

use super::HookedAgent;
use crate::text::json_edit;
use crate::workflow::hinted::hinted;

const TIMEOUT: u32 = 10;

/// State of our entry in an agent's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    /// No entry.
    Absent,
    /// Complete, in the current form.
    Installed,
    /// Incomplete.
    Partial,
    /// Another program's entry in a place that allows only one.
    Foreign(String),
}

/// Returns the state of our entry.
pub fn state(agent: HookedAgent, text: &str) -> anyhow::Result<EntryState> {
    if agent == HookedAgent::Codex {
        return notify_state(&toml(text)?);
    }

    let value = value(text)?;
    let events = events(agent);
    let found = events
        .iter()
        .filter(|event| ours(agent, &value, event).is_some());
    Ok(match found.count() {
        0 => EntryState::Absent,
        count if count == events.len() => EntryState::Installed,
        _ => EntryState::Partial,
    })
}

/// Returns the programs that our entries call.
pub fn programs(agent: HookedAgent, text: &str) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    if agent == HookedAgent::Codex {
        let document = toml(text)?;
        let words = document.get("notify").and_then(Item::as_array);
        let words = words.into_iter().flatten().filter_map(|word| word.as_str());
        lines.push(words.collect::<Vec<_>>().join(" "));
    } else {
        let value = value(text)?;
        let groups = events(agent).map(|event| value["hooks"][event].as_array().cloned());
        let groups = groups.into_iter().flatten().flatten();
        let hooks = groups.filter_map(|group| group["hooks"].as_array().cloned());
        let commands = hooks
            .flatten()
            .filter_map(|hook| hook["command"].as_str().map(str::to_owned));
        lines.extend(commands);
    }

    let programs = lines.iter().filter_map(|line| {
        our_program(agent, &line.split_whitespace().collect::<Vec<_>>()).map(str::to_owned)
    });
    Ok(programs.collect())
}

/// Returns the settings with our entry added.
pub fn added(agent: HookedAgent, text: &str) -> anyhow::Result<String> {
    if agent == HookedAgent::Codex {
        return with_notify(text);
    }

    let mut text = text.to_owned();
    for event in events(agent) {
        if ours(agent, &value(&text)?, event).is_none() {
            text = json_edit::push(&text, &["hooks", event], &group(agent))
                .with_context(|| format!("`hooks` or `hooks.{event}` is something else"))?;
        }
    }

    Ok(text)
}

/// Returns the settings with our entry removed.
pub fn removed(agent: HookedAgent, text: &str) -> anyhow::Result<String> {
    if agent == HookedAgent::Codex {
        return without_notify(text);
    }

    let mut text = text.to_owned();
    for event in events(agent) {
        while let Some(index) = ours(agent, &value(&text)?, event) {
            let group = &value(&text)?["hooks"][event][index];
            let is_alone = group["hooks"].as_array().is_some_and(|all| all.len() == 1);
            let without = json_edit::remove(&text, &["hooks", event], index);
            text = without.filter(|_| is_alone).with_context(|| {
                format!("`hooks.{event}` has our entry in one with others: remove it by hand")
            })?;
        }
    }

    Ok(text)
}

fn events(agent: HookedAgent) -> [&'static str; 2] {
    match agent {
        HookedAgent::Gemini => ["BeforeAgent", "AfterAgent"],
        HookedAgent::Claude | HookedAgent::Codex => ["UserPromptSubmit", "Stop"],
    }
}

/// The entry for one event.
fn group(agent: HookedAgent) -> Value {
    // Silent and always successful: a missing or failing TeDDy must not disturb the agent.
    let command = format!("teddy hook {} 2>/dev/null || true", agent.name());
    match agent {
        // Gemini counts milliseconds.
        HookedAgent::Gemini => json!({ "hooks": [
            { "name": "teddy", "type": "command", "command": command, "timeout": TIMEOUT * 1000 }
        ] }),
        _ => json!({ "hooks": [
            { "type": "command", "command": command, "timeout": TIMEOUT }
        ] }),
    }
}

fn ours(agent: HookedAgent, value: &Value, event: &str) -> Option<usize> {
    let is_ours = |hook: &Value| {
        let command = hook["command"].as_str().unwrap_or_default();
        is_our_command(agent, &command.split_whitespace().collect::<Vec<_>>())
    };
    let groups = value["hooks"][event].as_array()?;
    groups.iter().position(|group| {
        group["hooks"]
            .as_array()
            .is_some_and(|all| all.iter().any(is_ours))
    })
}

fn is_our_command(agent: HookedAgent, words: &[&str]) -> bool {
    our_program(agent, words).is_some()
}

fn our_program<'w>(agent: HookedAgent, words: &[&'w str]) -> Option<&'w str> {
    let mut calls = words.windows(3);
    let call = calls.find(|words| {
        let program = words[0].rsplit('/').next().unwrap_or_default();
        ["teddy", "git-teddy"].contains(&program) && words[1..] == ["hook", agent.name()]
    });
    call.map(|words| words[0])
}

fn value(text: &str) -> anyhow::Result<Value> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }

    let value: Value = serde_json::from_str(text).context("it is not plain JSON")?;
    anyhow::ensure!(value.is_object(), "it is not an object");
    Ok(value)
}

fn toml(text: &str) -> anyhow::Result<DocumentMut> {
    let parsed = text.parse::<DocumentMut>();
    parsed.map_err(|error| anyhow::anyhow!("it is not TOML: {}", error.message()))
}

fn notify_state(document: &DocumentMut) -> anyhow::Result<EntryState> {
    let Some(notify) = document.get("notify") else {
        return Ok(EntryState::Absent);
    };
    let words: Option<Vec<&str>> = notify
        .as_array()
        .and_then(|words| words.iter().map(|word| word.as_str()).collect());
    let is_ours = words.is_some_and(|words| is_our_command(HookedAgent::Codex, &words));
    Ok(match is_ours {
        true => EntryState::Installed,
        false => EntryState::Foreign(notify.to_string().trim().to_owned()),
    })
}

fn with_notify(text: &str) -> anyhow::Result<String> {
    let mut document = toml(text)?;
    match notify_state(&document)? {
        EntryState::Foreign(other) => Err(hinted(
            format!("`notify` is set already: {other}"),
            "Codex runs only one program; `teddy record` and `teddy run` work without it",
        )),
        EntryState::Installed => Ok(text.to_owned()),
        EntryState::Absent | EntryState::Partial => {
            let words = Array::from_iter(["teddy", "hook", "codex"]);
            document.insert("notify", Item::Value(words.into()));
            Ok(document.to_string())
        }
    }
}

fn without_notify(text: &str) -> anyhow::Result<String> {
    let mut document = toml(text)?;
    if notify_state(&document)? != EntryState::Installed {
        return Ok(text.to_owned());
    }
    document.remove("notify");
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agent: HookedAgent, text: &str) -> String {
        let with = added(agent, text).unwrap();
        assert_eq!(state(agent, &with).unwrap(), EntryState::Installed);
        assert_eq!(added(agent, &with).unwrap(), with);
        assert_eq!(removed(agent, &with).unwrap(), text);
        assert_eq!(removed(agent, text).unwrap(), text);
        with
    }

    #[test]
    fn an_entry_comes_and_goes_and_leaves_the_rest_as_it_was() {
        let with = check(HookedAgent::Claude, "{}");
        assert!(with.contains("\"teddy hook claude 2>/dev/null || true\""));
        assert!(with.contains("\"timeout\": 10,\n"), "{with}");
        let with = check(HookedAgent::Gemini, "{\n    \"theme\": \"x\"\n}\n");
        assert!(with.contains("\"BeforeAgent\"") && with.contains("\"timeout\": 10000,"));
        check(
            HookedAgent::Claude,
            "{ \"b\": 1,\n  \"hooks\": {\"Stop\": [ {\"hooks\": [{\"command\": \"say\"}]} ]},  \"a\" : 2 }\n",
        );
    }

    #[test]
    fn an_entry_of_codex_comes_and_goes() {
        let with = check(HookedAgent::Codex, "");
        assert_eq!(with, "notify = [\"teddy\", \"hook\", \"codex\"]\n");
        let text = "# mine\nmodel = \"x\" # yes\n\n[tools] # none\nweb = true\n";
        let with = check(HookedAgent::Codex, text);
        assert_eq!(
            with,
            "# mine\nmodel = \"x\" # yes\nnotify = [\"teddy\", \"hook\", \"codex\"]\n\n[tools] # none\nweb = true\n"
        );
    }

    #[test]
    fn what_another_program_has_stays_its_own() {
        let text = "notify = [\"say\", \"done\"]\n";
        let error = added(HookedAgent::Codex, text).unwrap_err().to_string();
        assert_eq!(error, "`notify` is set already: [\"say\", \"done\"]");
        assert_eq!(removed(HookedAgent::Codex, text).unwrap(), text);
        for (agent, text) in [
            (HookedAgent::Codex, "notify = "),
            (HookedAgent::Claude, "// {}\n{}"),
            (HookedAgent::Claude, "[]"),
            (HookedAgent::Claude, "{\"hooks\": {\"Stop\": 1}}"),
        ] {
            assert!(added(agent, text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_program_that_is_called_is_known() {
        let ours = "{\"command\": \"/opt/bin/teddy hook claude\"}";
        let text = format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{ours}, {{}}]}}]}}}}");
        let called = programs(HookedAgent::Claude, &text).unwrap();
        assert_eq!(called, ["/opt/bin/teddy"]);
        let text = "notify = [\"teddy\", \"hook\", \"codex\"]\n";
        assert_eq!(programs(HookedAgent::Codex, text).unwrap(), ["teddy"]);
        assert_eq!(programs(HookedAgent::Gemini, "").unwrap(), [""; 0]);
    }

    #[test]
    fn an_entry_among_others_is_left_to_the_user() {
        let ours = "{\"command\": \"/opt/bin/teddy hook claude\"}";
        let text = format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{ours}, {{}}]}}]}}}}");
        assert_eq!(
            state(HookedAgent::Claude, &text).unwrap(),
            EntryState::Partial
        );
        let error = removed(HookedAgent::Claude, &text).unwrap_err().to_string();
        assert!(error.contains("remove it by hand"), "{error}");
    }
}
