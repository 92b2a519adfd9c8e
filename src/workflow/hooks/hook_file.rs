//! Locates, reads and writes an agent's settings file. Follows no symlink that leads outside the
//! home directory or project.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use toml_edit::{Document, Item, Table};

use super::HookedAgent;
use crate::host::env;
use crate::host::file::{FileInfo, FileMode, Root, make_shared_dirs, replace_if};
use crate::text::hint::with_hint;
use crate::text::json_edit;

const MAX_FILE: u64 = 4 << 20;
const MAX_ATTEMPTS: u32 = 50;
const MAX_EMPTY_READS: u32 = 25;
/// Permission bit.
const OWNER_CAN_WRITE: u32 = 0o200;
const PAUSE: Duration = Duration::from_millis(20);

/// How an agent reports its prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookForm {
    /// Hooks for the start of a prompt, for tools and for the end.
    Events,
    /// `notify` of Codex, which reports only the end.
    Notify,
}

#[derive(Debug)]
pub struct HookFile {
    agent: HookedAgent,
    form: HookForm,
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
    pub fn of_project(agent: HookedAgent, project: &Path) -> HookFile {
        HookFile {
            agent,
            form: HookForm::Events,
            root: project.to_owned(),
            rel_path: Path::new(agent.config_dir()).join(agent.file()),
        }
    }

    /// Settings file of the user. Follows symlinks within the home directory: many users keep their
    /// settings in a repository there.
    pub fn of_user(
        agent: HookedAgent,
        form: HookForm,
        home: Option<&Path>,
    ) -> anyhow::Result<HookFile> {
        let file = match form {
            HookForm::Events => agent.file(),
            HookForm::Notify => CODEX_CONFIG,
        };
        if let Some(dir) = agent.dir_variable().and_then(env::dir_var) {
            return Ok(HookFile {
                agent,
                form,
                root: dir,
                rel_path: file.into(),
            });
        }

        let home = home.context("HOME is not set")?;
        let path = home.join(agent.config_dir()).join(file);
        let home = home
            .canonicalize()
            .context("the home directory does not exist")?;
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(_) => home.join(agent.config_dir()).join(file),
        };
        let rel_path = real.strip_prefix(&home).map_err(|_| {
            let (path, real) = (path.display(), real.display());
            let error =
                anyhow::anyhow!("`{path}` is `{real}`, which is not below your home directory");
            with_hint(error, add_by_hand(agent, form))
        })?;
        Ok(HookFile {
            agent,
            form,
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
        let mut bytes = root.read(&self.rel_path, MAX_FILE)?;
        // An agent that saves the file in place empties it first.
        for _ in 0..MAX_EMPTY_READS {
            if !bytes.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
            bytes = root.read(&self.rel_path, MAX_FILE)?;
        }
        let text = String::from_utf8(bytes);
        text.map(Some)
            .with_context(|| format!("`{}` is not UTF-8", self.path().display()))
    }

    pub fn state(&self) -> anyhow::Result<EntryState> {
        let text = self.read()?.unwrap_or_default();
        let state = match self.form {
            HookForm::Events => entry_state(self.agent, &text),
            HookForm::Notify => toml(&text).map(|document| notify_state(document.as_table())),
        };
        state.with_context(|| format!("`{}` is left as it is", self.path().display()))
    }

    pub fn programs(&self) -> anyhow::Result<Vec<String>> {
        let text = self.read()?.unwrap_or_default();
        match self.form {
            HookForm::Events => entry_programs(self.agent, &text),
            HookForm::Notify => notify_programs(&text),
        }
    }

    pub fn to_install(&self) -> anyhow::Result<HookChange> {
        self.with_our_entry().map_err(|error| {
            let hint = add_by_hand(self.agent, self.form);
            with_hint(self.refused(error), hint)
        })
    }

    fn with_our_entry(&self) -> anyhow::Result<HookChange> {
        let before = self.read()?;
        let after = match (self.form, before.as_deref()) {
            (HookForm::Events, Some(before)) => with_entry(self.agent, before),
            (HookForm::Events, None) => created(self.agent),
            (HookForm::Notify, Some(before)) => with_notify(before),
            (HookForm::Notify, None) => Ok(format!("{NOTIFY}\n")),
        };
        let after = Some(after?);
        if before != after {
            self.ensure_writable()?;
        }
        Ok(HookChange { before, after })
    }

    /// The file is replaced by a new one, which its permissions would not prevent.
    fn ensure_writable(&self) -> anyhow::Result<()> {
        let entry = Root::open(&self.root).and_then(|root| root.entry(&self.rel_path));
        let is_read_only = |entry: FileInfo| entry.permissions & OWNER_CAN_WRITE == 0;
        anyhow::ensure!(
            !entry.ok().flatten().is_some_and(is_read_only),
            "it is read-only"
        );
        Ok(())
    }

    /// Deletes a file that the addition created, unless it has other content by now.
    pub fn to_remove(&self) -> anyhow::Result<HookChange> {
        let Some(before) = self.read()? else {
            return Ok(HookChange {
                before: None,
                after: None,
            });
        };
        let after = match self.form {
            HookForm::Events => without_entry(self.agent, &before),
            HookForm::Notify => without_notify(&before),
        };
        let after = after.map_err(|error| self.refused(error))?;
        if after != before {
            self.ensure_writable()
                .map_err(|error| self.refused(error))?;
        }
        let is_created = after != before
            && match self.form {
                HookForm::Events => json_edit::is_created(&before, &after),
                HookForm::Notify => before == format!("{NOTIFY}\n"),
            };
        Ok(HookChange {
            before: Some(before),
            after: (!is_created).then_some(after),
        })
    }

    fn refused(&self, error: anyhow::Error) -> anyhow::Error {
        anyhow::anyhow!("`{}` is left as it is: {error:#}", self.path().display())
    }

    /// Writes a change. If the agent saves the file at the same time, makes the change again for
    /// what it saved.
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
            "another program keeps changing `{}`; try again",
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

/// Our entry, for a user who edits the file.
fn add_by_hand(agent: HookedAgent, form: HookForm) -> String {
    let lines = match form {
        HookForm::Events => created(agent).unwrap_or_default(),
        HookForm::Notify => format!("{NOTIFY}\n"),
    };
    format!("add it yourself:\n{lines}")
}

// Finds, adds and removes our entry in an agent's settings. All other bytes are preserved, and a
// removal restores the text from before the addition.

// In seconds.
const HOOK_TIMEOUT: u32 = 10;
const CODEX_CONFIG: &str = "config.toml";
const NOTIFY: &str = r#"notify = ["teddy", "hook", "codex"]"#;
/// Argument of our hook in front of the program that `notify` called before.
pub const THEN: &str = "--then";
const NOTIFY_FIRST: &str = r#""teddy", "hook", "codex", "--then", "#;
const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryState {
    Absent,
    /// Complete, in the current form.
    Installed,
    Partial,
    /// Another program's entry in a place that allows only one. Ours would start that program.
    Foreign(String),
}

pub fn entry_state(agent: HookedAgent, text: &str) -> anyhow::Result<EntryState> {
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
    let value = parse_json(text)?;
    let groups = hook_events(agent).map(|event| value["hooks"][event].as_array().cloned());
    let groups = groups.into_iter().flatten().flatten();
    let hooks = groups.filter_map(|group| group["hooks"].as_array().cloned());
    let programs = hooks.flatten().filter_map(|hook| {
        let words = hook["command"].as_str()?.split_whitespace();
        our_program(agent, &words.collect::<Vec<_>>()).map(str::to_owned)
    });
    let programs: BTreeSet<String> = programs.collect();
    Ok(programs.into_iter().collect())
}

/// With only our entry.
pub fn created(agent: HookedAgent) -> anyhow::Result<String> {
    let first = hook_events(agent)[0];
    let group = entry_group(agent, first);
    with_entry(agent, &json_edit::created(&["hooks", first], &group))
}

pub fn with_entry(agent: HookedAgent, text: &str) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    for event in hook_events(agent) {
        if find_own_group(agent, &parse_json(&text)?, event).is_none() {
            text = json_edit::push(&text, &["hooks", event], &entry_group(agent, event))
                .with_context(|| format!("`hooks` or `hooks.{event}` has an unexpected type"))?;
        }
    }

    Ok(text)
}

pub fn without_entry(agent: HookedAgent, text: &str) -> anyhow::Result<String> {
    let mut text = text.to_owned();
    for event in hook_events(agent) {
        while let Some(index) = find_own_group(agent, &parse_json(&text)?, event) {
            let group = &parse_json(&text)?["hooks"][event][index];
            let is_alone = group["hooks"].as_array().is_some_and(|all| all.len() == 1);
            let without = json_edit::remove(&text, &["hooks", event], index);
            text = without.filter(|_| is_alone).with_context(|| {
                format!("`hooks.{event}` has TeDDy's command in an entry with others: remove it there yourself")
            })?;
        }
    }

    Ok(text)
}

fn hook_events(agent: HookedAgent) -> [&'static str; 3] {
    match agent {
        HookedAgent::Gemini => ["BeforeAgent", "AfterTool", "AfterAgent"],
        HookedAgent::Claude | HookedAgent::Codex => ["UserPromptSubmit", "PostToolUse", "Stop"],
    }
}

fn entry_group(agent: HookedAgent, event: &str) -> Value {
    // Silent and always successful: a missing or failing TeDDy must not disturb the agent.
    let command = format!("teddy hook {} 2>/dev/null || true", agent.name());
    let hook = match agent {
        // Gemini counts milliseconds.
        HookedAgent::Gemini => json!({
            "name": "teddy", "type": "command", "command": command, "timeout": HOOK_TIMEOUT * 1000
        }),
        _ => json!({ "type": "command", "command": command, "timeout": HOOK_TIMEOUT }),
    };
    // Only the tools that write files: a hook for each command would cost time.
    let tools = match (agent, event) {
        (HookedAgent::Claude, "PostToolUse") => Some("Edit|MultiEdit|Write|NotebookEdit"),
        (HookedAgent::Codex, "PostToolUse") => Some("apply_patch|Edit|Write"),
        (HookedAgent::Gemini, "AfterTool") => Some("write_file|replace"),
        _ => None,
    };
    match tools {
        Some(tools) => json!({ "matcher": tools, "hooks": [hook] }),
        None => json!({ "hooks": [hook] }),
    }
}

fn find_own_group(agent: HookedAgent, value: &Value, event: &str) -> Option<usize> {
    let is_ours = |hook: &Value| {
        let command = hook["command"].as_str().unwrap_or_default();
        our_program(agent, &command.split_whitespace().collect::<Vec<_>>()).is_some()
    };
    let groups = value["hooks"][event].as_array()?;
    groups.iter().position(|group| {
        group["hooks"]
            .as_array()
            .is_some_and(|all| all.iter().any(is_ours))
    })
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

    let plain = json_edit::without_comments(text);
    let value: Value = serde_json::from_str(&plain).context("it is not JSON")?;
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
    let words = notify_words(table);
    let is_ours = words.is_some_and(|words| our_program(HookedAgent::Codex, &words).is_some());
    match is_ours {
        true => EntryState::Installed,
        false => EntryState::Foreign(notify.to_string().trim().to_owned()),
    }
}

/// The program and arguments of `notify`; `None` if it is not a list of strings.
fn notify_words(table: &Table) -> Option<Vec<&str>> {
    let notify = table.get("notify")?.as_array()?;
    notify.iter().map(|word| word.as_str()).collect()
}

fn notify_programs(text: &str) -> anyhow::Result<Vec<String>> {
    let document = toml(text)?;
    let words = notify_words(document.as_table()).unwrap_or_default();
    let program = our_program(HookedAgent::Codex, &words);
    Ok(program.into_iter().map(str::to_owned).collect())
}

// The library writes a whole document with its own line ends, so the text is edited instead.
fn with_notify(text: &str) -> anyhow::Result<String> {
    let document = toml(text)?;
    match notify_state(document.as_table()) {
        // Codex runs only one program, so ours starts the other one.
        EntryState::Foreign(other) => {
            let place = notify_place(&document).map(|place| start_of(text) + place.start);
            let open = place.and_then(|start| Some(start + text[start..].find('[')? + 1));
            let is_list = notify_words(document.as_table()).is_some_and(|words| !words.is_empty());
            let open = open
                .filter(|_| is_list)
                .with_context(|| format!("`notify` is not a list of strings: {other}"))?;
            let (before, after) = text.split_at(open);
            return Ok(format!("{before}{NOTIFY_FIRST}{after}"));
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
    let words = notify_words(document.as_table()).unwrap_or_default();
    if words.get(3) == Some(&THEN) {
        let at = text[from..to].find(NOTIFY_FIRST).context(
            "`notify` calls TeDDy and another program, and was edited since: remove TeDDy by hand",
        )?;
        let (before, after) = text.split_at(from + at);
        return Ok(format!("{before}{}", &after[NOTIFY_FIRST.len()..]));
    }
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
        assert!(json_edit::is_created(&with, &without));
        for text in [
            "",
            "{}\n",
            "{\"hooks\": {}}",
            "{\"hooks\": {\"Stop\": []}}\r\n",
        ] {
            let with = check(HookedAgent::Claude, text);
            assert!(!json_edit::is_created(&with, text));
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

    #[track_caller]
    fn check_notify(text: &str) -> String {
        let with = with_notify(text).unwrap();
        let state = notify_state(toml(&with).unwrap().as_table());
        assert_eq!(state, EntryState::Installed);
        assert_eq!(with_notify(&with).unwrap(), with);
        assert_eq!(without_notify(&with).unwrap(), text);
        assert_eq!(notify_programs(&with).unwrap(), ["teddy"]);
        with
    }

    #[test]
    fn hooks_of_codex_are_those_of_claude() {
        let with = check(
            HookedAgent::Codex,
            "{\"hooks\": {\"Stop\": [{\"hooks\": []}]}}\n",
        );
        assert!(
            with.contains("teddy hook codex 2>/dev/null || true"),
            "{with}"
        );
        assert!(with.contains("\"UserPromptSubmit\"") && with.contains("\"apply_patch|"));
    }

    #[test]
    fn comments_in_settings_stay() {
        for text in [
            "// mine\n{}\n",
            "{\n  // mine\n  \"a\": \"//b\", /* and\n mine */\n  \"hooks\": {\n    \"Stop\": [\n      {}, // last\n    ],\n  },\n}\n",
        ] {
            check(HookedAgent::Claude, text);
        }
    }

    #[test]
    fn notify_comes_and_goes_and_the_program_before_is_called_as_well() {
        check_notify("");
        let with = check_notify("a = 1\nnotify = [\n  'say', \"done\" # mine\n]\n[b]\n");
        assert_eq!(
            with,
            "a = 1\nnotify = [\"teddy\", \"hook\", \"codex\", \"--then\", \n  'say', \"done\" # mine\n]\n[b]\n"
        );
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
            check_notify(text);
        }
        let line = format!("a = 1\n{NOTIFY} # mine\n");
        let without = without_notify(&line).unwrap();
        assert_eq!(without, "a = 1\n# mine\n");
        let text = "# mine\nmodel = \"x\" # yes\n\n[tools] # none\nweb = true\n";
        let with = check_notify(text);
        assert_eq!(
            with,
            "# mine\nmodel = \"x\" # yes\nnotify = [\"teddy\", \"hook\", \"codex\"]\n\n[tools] # none\nweb = true\n"
        );
    }

    #[test]
    fn what_another_program_has_stays_its_own() {
        for text in [
            "notify = ",
            "notify = 1\n",
            "notify = []\n",
            "notify = [1]\n",
        ] {
            assert!(with_notify(text).is_err(), "{text}");
        }
        for (agent, text) in [
            (HookedAgent::Claude, "{"),
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
        assert!(error.contains("remove it there yourself"), "{error}");
    }
}
