//! Locates, reads and writes an agent's settings file. Follows no symlink that leads outside the
//! home directory or project.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use toml_edit::{Document, Item, Table};

use super::HookedAgent;
use crate::host::env;
use crate::host::file::{FileMode, Root, make_shared_dirs, replace_if};
use crate::text::json_edit;
use crate::workflow::hint::{error_with_hint, with_hint};

const MAX_FILE: u64 = 4 << 20;
const MAX_ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookScope {
    /// For all its users.
    Project,
    /// For all projects.
    User,
}

#[derive(Debug)]
pub struct HookFile {
    agent: HookedAgent,
    /// No symlink below this directory is followed.
    root: PathBuf,
    rel_path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookChange {
    /// `None` if absent.
    pub before: Option<String>,
    /// `None` deletes the file.
    pub after: Option<String>,
}

impl HookFile {
    /// Fails for Codex, which reads `notify` only from the user's settings.
    pub fn of_project(agent: HookedAgent, project: &Path) -> anyhow::Result<HookFile> {
        if agent == HookedAgent::Codex {
            return Err(error_with_hint(
                "Codex takes `notify` from your own settings only",
                "`teddy hooks install codex --user`",
            ));
        }
        Ok(HookFile {
            agent,
            root: project.to_owned(),
            rel_path: Path::new(agent.config_dir()).join(agent.file()),
        })
    }

    /// Follows symlinks within the home directory: many users keep their settings in a repository
    /// there.
    pub fn of_user(agent: HookedAgent, home: Option<&Path>) -> anyhow::Result<HookFile> {
        if let Some(dir) = agent.dir_variable().and_then(env::dir_var) {
            return Ok(HookFile {
                agent,
                root: dir,
                rel_path: agent.file().into(),
            });
        }

        let home = home.context("HOME is not set")?;
        let path = home.join(agent.config_dir()).join(agent.file());
        // Compared by real paths, because the home directory itself can be a symlink.
        let home = home.canonicalize().context("the home folder is gone")?;
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(_) => home.join(agent.config_dir()).join(agent.file()),
        };
        let rel_path = real.strip_prefix(&home).map_err(|_| {
            let (path, real) = (path.display(), real.display());
            anyhow::anyhow!("`{path}` is `{real}`, which is not below your home folder")
        })?;
        Ok(HookFile {
            agent,
            rel_path: rel_path.to_owned(),
            root: home.clone(),
        })
    }

    pub fn path(&self) -> PathBuf {
        self.root.join(&self.rel_path)
    }

    /// `None` if absent.
    pub fn read(&self) -> anyhow::Result<Option<String>> {
        let Ok(root) = Root::open(&self.root) else {
            return Ok(None);
        };
        if root.kind(&self.rel_path)?.is_none() {
            return Ok(None);
        }
        let bytes = root.read(&self.rel_path, MAX_FILE)?;
        let text = String::from_utf8(bytes);
        text.map(Some)
            .with_context(|| format!("`{}` is not UTF-8", self.path().display()))
    }

    pub fn state(&self) -> anyhow::Result<EntryState> {
        entry_state(self.agent, &self.read()?.unwrap_or_default())
            .with_context(|| format!("`{}` is left as it is", self.path().display()))
    }

    pub fn programs(&self) -> anyhow::Result<Vec<String>> {
        entry_programs(self.agent, &self.read()?.unwrap_or_default())
    }

    pub fn to_install(&self) -> anyhow::Result<HookChange> {
        let before = self.read()?;
        let after = match before.as_deref() {
            Some(before) => with_entry(self.agent, before),
            None => created(self.agent),
        };
        Ok(HookChange {
            after: Some(after.map_err(|error| self.refused(error))?),
            before,
        })
    }

    /// Deletes a file that the addition created, unless it has other content by now.
    pub fn to_remove(&self) -> anyhow::Result<HookChange> {
        let Some(before) = self.read()? else {
            return Ok(HookChange {
                before: None,
                after: None,
            });
        };
        let after = without_entry(self.agent, &before).map_err(|error| self.refused(error))?;
        let is_created = after != before && is_created(self.agent, &before, &after);
        Ok(HookChange {
            before: Some(before),
            after: (!is_created).then_some(after),
        })
    }

    fn refused(&self, error: anyhow::Error) -> anyhow::Error {
        let hint = error.downcast_ref::<crate::workflow::hint::HintedError>();
        let hint = hint.map(|hinted| hinted.hint.clone());
        let error = anyhow::anyhow!("`{}` is left as it is: {error:#}", self.path().display());
        match hint {
            Some(hint) => with_hint(error, hint),
            None => error,
        }
    }

    /// If the agent saves the file at the same time, makes the change again for what it saved.
    pub fn write(
        &self,
        mut change: HookChange,
        make: fn(&HookFile) -> anyhow::Result<HookChange>,
    ) -> anyhow::Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            if self.write_once(&change)? {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
            change = make(self)?;
        }
        anyhow::bail!(
            "`{}` is changed by another program all the time; try again",
            self.path().display()
        )
    }

    /// `false` if the file is not what the change was made for.
    fn write_once(&self, change: &HookChange) -> anyhow::Result<bool> {
        if change.before == change.after {
            return Ok(true);
        }
        make_shared_dirs(&self.root)?;
        let root = Root::open(&self.root)?;
        // The agent can have created the file since it was read.
        let Some(before) = &change.before else {
            let after = change.after.as_deref().unwrap_or_default();
            let created = root.create_new(&self.rel_path, after.as_bytes(), FileMode::Plain);
            return match created {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                created => Ok(created.map(|()| true)?),
            };
        };
        let after = change.after.as_deref().map(str::as_bytes);
        match replace_if(&root, &self.rel_path, before.as_bytes(), after) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            replaced => Ok(replaced?),
        }
    }
}

// Finds, adds and removes our entry in an agent's settings. All other bytes are preserved, and a
// removal restores the text from before the addition.

// In seconds.
const HOOK_TIMEOUT: u32 = 10;
const NOTIFY: &str = r#"notify = ["teddy", "hook", "codex"]"#;
const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    Absent,
    /// Complete, in the current form.
    Installed,
    Partial,
    /// Another program's entry in a place that allows only one.
    Foreign(String),
}

pub fn entry_state(agent: HookedAgent, text: &str) -> anyhow::Result<EntryState> {
    if agent == HookedAgent::Codex {
        return Ok(notify_state(toml(text)?.as_table()));
    }

    let value = parse_json(text)?;
    let events = hook_events(agent);
    let installed = events
        .iter()
        .filter(|event| find_own_group(agent, &value, event).is_some());
    Ok(match installed.count() {
        0 => EntryState::Absent,
        count if count == events.len() => EntryState::Installed,
        _ => EntryState::Partial,
    })
}

pub fn entry_programs(agent: HookedAgent, text: &str) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    if agent == HookedAgent::Codex {
        let document = toml(text)?;
        let args = document.as_table().get("notify").and_then(Item::as_array);
        let tokens = args.into_iter().flatten().filter_map(|word| word.as_str());
        lines.push(tokens.collect::<Vec<_>>().join(" "));
    } else {
        let value = parse_json(text)?;
        let groups = hook_events(agent).map(|event| value["hooks"][event].as_array().cloned());
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

/// With only our entry.
pub fn created(agent: HookedAgent) -> anyhow::Result<String> {
    if agent == HookedAgent::Codex {
        return Ok(format!("{NOTIFY}\n"));
    }
    let [first, _] = hook_events(agent);
    with_entry(
        agent,
        &json_edit::created(&["hooks", first], &entry_group(agent)),
    )
}

/// `without` are the settings without our entry.
pub fn is_created(agent: HookedAgent, text: &str, without: &str) -> bool {
    match agent {
        HookedAgent::Codex => text == format!("{NOTIFY}\n"),
        _ => json_edit::is_created(text, without),
    }
}

pub fn with_entry(agent: HookedAgent, text: &str) -> anyhow::Result<String> {
    if agent == HookedAgent::Codex {
        return with_notify(text);
    }

    let mut text = text.to_owned();
    for event in hook_events(agent) {
        if find_own_group(agent, &parse_json(&text)?, event).is_none() {
            text = json_edit::push(&text, &["hooks", event], &entry_group(agent))
                .with_context(|| format!("`hooks` or `hooks.{event}` is something else"))?;
        }
    }

    Ok(text)
}

pub fn without_entry(agent: HookedAgent, text: &str) -> anyhow::Result<String> {
    if agent == HookedAgent::Codex {
        return without_notify(text);
    }

    let mut text = text.to_owned();
    for event in hook_events(agent) {
        while let Some(index) = find_own_group(agent, &parse_json(&text)?, event) {
            let group = &parse_json(&text)?["hooks"][event][index];
            let is_alone = group["hooks"].as_array().is_some_and(|all| all.len() == 1);
            let without = json_edit::remove(&text, &["hooks", event], index);
            text = without.filter(|_| is_alone).with_context(|| {
                format!("`hooks.{event}` has our entry in one with others: remove it by hand")
            })?;
        }
    }

    Ok(text)
}

fn hook_events(agent: HookedAgent) -> [&'static str; 2] {
    match agent {
        HookedAgent::Gemini => ["BeforeAgent", "AfterAgent"],
        HookedAgent::Claude | HookedAgent::Codex => ["UserPromptSubmit", "Stop"],
    }
}

fn entry_group(agent: HookedAgent) -> Value {
    // Silent and always successful: a missing or failing TeDDy must not disturb the agent.
    let command = format!("teddy hook {} 2>/dev/null || true", agent.name());
    match agent {
        // Gemini counts milliseconds.
        HookedAgent::Gemini => json!({ "hooks": [
            { "name": "teddy", "type": "command", "command": command, "timeout": HOOK_TIMEOUT * 1000 }
        ] }),
        _ => json!({ "hooks": [
            { "type": "command", "command": command, "timeout": HOOK_TIMEOUT }
        ] }),
    }
}

fn find_own_group(agent: HookedAgent, value: &Value, event: &str) -> Option<usize> {
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

fn is_our_command(agent: HookedAgent, tokens: &[&str]) -> bool {
    our_program(agent, tokens).is_some()
}

fn our_program<'w>(agent: HookedAgent, tokens: &[&'w str]) -> Option<&'w str> {
    let mut calls = tokens.windows(3);
    let call = calls.find(|tokens| {
        let program = tokens[0].rsplit('/').next().unwrap_or_default();
        ["teddy", "git-teddy"].contains(&program) && tokens[1..] == ["hook", agent.name()]
    });
    call.map(|tokens| tokens[0])
}

fn parse_json(text: &str) -> anyhow::Result<Value> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }

    let value: Value = serde_json::from_str(text).context("it is not plain JSON")?;
    anyhow::ensure!(value.is_object(), "it is not an object");
    Ok(value)
}

fn toml(text: &str) -> anyhow::Result<Document<&str>> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let parsed = Document::parse(text);
    parsed.map_err(|error| anyhow::anyhow!("it is not TOML: {}", error.message()))
}

fn notify_state(table: &Table) -> EntryState {
    let Some(notify) = table.get("notify") else {
        return EntryState::Absent;
    };
    let tokens: Option<Vec<&str>> = notify
        .as_array()
        .and_then(|items| items.iter().map(|word| word.as_str()).collect());
    let is_ours = tokens.is_some_and(|tokens| is_our_command(HookedAgent::Codex, &tokens));
    match is_ours {
        true => EntryState::Installed,
        false => EntryState::Foreign(notify.to_string().trim().to_owned()),
    }
}

// The library writes a whole document with its own line ends, so the text is edited instead.
fn with_notify(text: &str) -> anyhow::Result<String> {
    let document = toml(text)?;
    match notify_state(document.as_table()) {
        EntryState::Foreign(other) => {
            return Err(error_with_hint(
                format!("`notify` is set already: {other}"),
                "Codex runs only one program; `teddy record` and `teddy run` work without it",
            ));
        }
        EntryState::Installed => return Ok(text.to_owned()),
        EntryState::Absent | EntryState::Partial => {}
    }

    let start = start_of(text);
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let Some(last) = end_of_values(document.as_table()) else {
        let (before, after) = text.split_at(start);
        // Without a line end, a file that was empty differs from one that we created.
        let line_end = if after.is_empty() { "" } else { line_end };
        return Ok(format!("{before}{NOTIFY}{line_end}{after}"));
    };
    match text[start + last..].find('\n') {
        Some(at) => {
            let (before, after) = text.split_at(start + last + at + 1);
            Ok(format!("{before}{NOTIFY}{line_end}{after}"))
        }
        None => Ok(format!("{text}{line_end}{NOTIFY}")),
    }
}

fn without_notify(text: &str) -> anyhow::Result<String> {
    let document = toml(text)?;
    if notify_state(document.as_table()) != EntryState::Installed {
        return Ok(text.to_owned());
    }
    let span = notify_place(&document).context("`notify` has no place in it")?;
    let start = start_of(text);
    let (from, to) = (start + span.start, start + span.end);
    let line = text[..from].rfind('\n').map_or(start, |at| at + 1);
    let next_line = text[to..].find('\n').map(|at| to + at + 1);
    let line_end = next_line.unwrap_or(text.len());

    // A comment that the user added to the line stays.
    let after = text[to..line_end].trim_start_matches([' ', '\t']);
    if after.starts_with('#') {
        return Ok(format!(
            "{}{}",
            &text[..line],
            &text[line_end - after.len()..]
        ));
    }
    let mut before = &text[..line];
    if next_line.is_none() {
        // The file had no last line end, so the one in front is ours.
        before = before.strip_suffix('\n').unwrap_or(before);
        before = before.strip_suffix('\r').unwrap_or(before);
    }
    Ok(format!("{before}{}", &text[line_end..]))
}

/// After a byte order mark.
fn start_of(text: &str) -> usize {
    match text.starts_with(BYTE_ORDER_MARK) {
        true => BYTE_ORDER_MARK.len(),
        false => 0,
    }
}

fn notify_place(document: &Document<&str>) -> Option<Range<usize>> {
    let (key, item) = document.as_table().get_key_value("notify")?;
    Some(key.span()?.start..item.span()?.end)
}

/// In front of all tables.
fn end_of_values(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(table) if table.is_dotted() => end_of_values(table),
        _ => None,
    });
    ends.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agent: HookedAgent, text: &str) -> String {
        let with = with_entry(agent, text).unwrap();
        assert_eq!(entry_state(agent, &with).unwrap(), EntryState::Installed);
        assert_eq!(with_entry(agent, &with).unwrap(), with);
        assert_eq!(without_entry(agent, &with).unwrap(), text);
        assert_eq!(without_entry(agent, text).unwrap(), text);
        with
    }

    #[test]
    fn an_entry_comes_and_goes_and_leaves_the_rest_as_it_was() {
        let with = created(HookedAgent::Claude).unwrap();
        let without = without_entry(HookedAgent::Claude, &with).unwrap();
        assert!(is_created(HookedAgent::Claude, &with, &without));
        for text in [
            "",
            "{}\n",
            "{\"hooks\": {}}",
            "{\"hooks\": {\"Stop\": []}}\r\n",
        ] {
            let with = check(HookedAgent::Claude, text);
            assert!(!is_created(HookedAgent::Claude, &with, text));
        }
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
        let with = created(HookedAgent::Codex).unwrap();
        assert_eq!(with, "notify = [\"teddy\", \"hook\", \"codex\"]\n");
        assert!(is_created(HookedAgent::Codex, &with, ""));
        let with = check(HookedAgent::Codex, "");
        assert!(!is_created(HookedAgent::Codex, &with, ""));
        for text in [
            "\n",
            "# mine",
            "a = 1",
            "a = 1 # one\r\nb = 2\r\n\r\n[c]\r\nd = 3",
            "\u{feff}a = 1\r\n",
            "\u{feff}[c]\n",
            "a = [\n  1, # one\n  2\n] # end\n[[c]]\n",
            "a.b = '''\n[x]\n'''\n[c]\n",
            "a.b = 1\na.c = 2",
            "[c]\nnotify = 1\n",
        ] {
            check(HookedAgent::Codex, text);
        }
        let line = format!("a = 1\n{NOTIFY} # mine\n");
        let without = without_entry(HookedAgent::Codex, &line).unwrap();
        assert_eq!(without, "a = 1\n# mine\n");
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
        let error = with_entry(HookedAgent::Codex, text)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "`notify` is set already: [\"say\", \"done\"]");
        assert_eq!(without_entry(HookedAgent::Codex, text).unwrap(), text);
        for (agent, text) in [
            (HookedAgent::Codex, "notify = "),
            (HookedAgent::Claude, "// {}\n{}"),
            (HookedAgent::Claude, "[]"),
            (HookedAgent::Claude, "{\"hooks\": {\"Stop\": 1}}"),
        ] {
            assert!(with_entry(agent, text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_program_that_is_called_is_known() {
        let own_hook = "{\"command\": \"/opt/bin/teddy hook claude\"}";
        let text = format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{own_hook}, {{}}]}}]}}}}");
        let called = entry_programs(HookedAgent::Claude, &text).unwrap();
        assert_eq!(called, ["/opt/bin/teddy"]);
        let text = "notify = [\"teddy\", \"hook\", \"codex\"]\n";
        assert_eq!(entry_programs(HookedAgent::Codex, text).unwrap(), ["teddy"]);
        assert_eq!(entry_programs(HookedAgent::Gemini, "").unwrap(), [""; 0]);
    }

    #[test]
    fn an_entry_among_others_is_left_to_the_user() {
        let own_hook = "{\"command\": \"/opt/bin/teddy hook claude\"}";
        let text = format!("{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{own_hook}, {{}}]}}]}}}}");
        assert_eq!(
            entry_state(HookedAgent::Claude, &text).unwrap(),
            EntryState::Partial
        );
        let error = without_entry(HookedAgent::Claude, &text)
            .unwrap_err()
            .to_string();
        assert!(error.contains("remove it by hand"), "{error}");
    }
}
