//! Adds a model to the user's configuration file without touching other lines.
//!
//! TeDDy writes only `model` and one entry of `models`, and edits lines so that comments and layout
//! survive. [`NewModel::written`] parses the result and refuses the edit unless it means the same
//! as before plus the new settings.

use serde_yaml::{Mapping, Value};

use super::layer::Layer;
use super::settings::{ModelSettings, Price};
use super::unknown::insert_at;

#[derive(Debug, Clone, PartialEq)]
pub struct NewModel {
    /// A name, or `kind:id`.
    pub model: String,
    /// `None` if `model` needs no entry, or it exists already.
    pub entry: Option<ModelSettings>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditRefusal {
    #[error("{0}")]
    Wrong(String),
    /// Valid, but in a style that the line editor doesn't support.
    #[error("its layout is not one that can be changed safely")]
    Layout,
}

impl NewModel {
    /// Picks a name that the file doesn't use for another model. Reuses an identical entry.
    pub fn fitted(mut self, text: &str) -> NewModel {
        // `written` reports an invalid file.
        let Ok(layer) = Layer::parse("", text) else {
            return self;
        };
        let Some(settings) = self.entry.clone() else {
            return self;
        };

        let names = (1..).map(|number| match number {
            1 => self.model.clone(),
            number => format!("{}-{number}", self.model),
        });
        for name in names {
            match entry(&layer.values, &name) {
                None => {
                    self.model = name;
                    return self;
                }
                Some(value) if is_same(value, &settings) => {
                    return NewModel {
                        model: name,
                        entry: None,
                    };
                }
                Some(_) => {}
            }
        }
        self
    }

    /// For the user to add by hand.
    pub fn lines(&self) -> String {
        let model = format!("model: {}\n", scalar(&self.model));
        match &self.entry {
            Some(settings) => {
                let name = scalar(&self.model);
                format!("{model}models:\n  {name}: {}\n", flow(settings))
            }
            None => model,
        }
    }

    pub fn written(&self, text: &str) -> Result<String, EditRefusal> {
        let before = Layer::parse("", text).map_err(|error| {
            let message = error.to_string();
            // The message starts with the empty origin.
            EditRefusal::Wrong(message.trim_start_matches(": ").to_owned())
        })?;

        let mut lines = ConfigLines::of(text);
        if let Some(settings) = &self.entry {
            lines.add_entry(&scalar(&self.model), &flow(settings))?;
        }
        lines.set_model(&scalar(&self.model));

        let text = lines.text();
        let after = Layer::parse("", &text).map_err(|_| EditRefusal::Layout)?;
        // The line editor doesn't understand all of YAML, so check that the result means what was
        // intended.
        if after.values == self.expected_values(before.values) {
            Ok(text)
        } else {
            Err(EditRefusal::Layout)
        }
    }

    fn expected_values(&self, mut values: Mapping) -> Mapping {
        insert_at(&mut values, &["model"], self.model.as_str().into());
        if let Some(settings) = &self.entry {
            let entry = serde_yaml::from_str(&flow(settings)).unwrap_or_default();
            insert_at(&mut values, &["models", &self.model], entry);
        }
        values
    }
}

fn entry<'v>(values: &'v Mapping, name: &str) -> Option<&'v Value> {
    values.get("models")?.as_mapping()?.get(name)
}

fn is_same(value: &Value, settings: &ModelSettings) -> bool {
    serde_yaml::from_value::<ModelSettings>(value.clone()).is_ok_and(|parsed| parsed == *settings)
}

fn scalar(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    let is_plain = text.chars().all(is_word)
        && matches!(
            serde_yaml::from_str(text),
            Ok(Value::String(read)) if read == text
        );
    if is_plain {
        text.to_owned()
    } else {
        // JSON strings are valid YAML.
        serde_json::json!(text).to_string()
    }
}

/// A one-line YAML mapping.
pub fn flow(settings: &ModelSettings) -> String {
    let text = |key: &str, value: &str| format!("{key}: {}", scalar(value));
    let mut parts = vec![text("kind", settings.kind.name())];
    if !settings.id.is_empty() {
        parts.push(text("id", &settings.id));
    }
    if !settings.run.is_empty() {
        let args: Vec<String> = settings.run.iter().map(|word| scalar(word)).collect();
        parts.push(format!("run: [{}]", args.join(", ")));
    }

    let further = [
        ("base_url", &settings.base_url),
        ("api_key_env", &settings.api_key_env),
    ];
    for (key, value) in further {
        parts.extend(value.as_ref().map(|value| text(key, value)));
    }
    parts.extend(settings.price.as_ref().map(prices));
    parts.extend(
        settings
            .timeout
            .map(|limit| format!("timeout: {}", limit.as_secs())),
    );

    format!("{{ {} }}", parts.join(", "))
}

fn prices(price: &Price) -> String {
    let (input, output) = (price.input, price.output);
    let cached = price
        .cache_read
        .map(|price| format!(", cache_read: {price}"));
    format!(
        "price: {{ input: {input}, output: {output}{} }}",
        cached.unwrap_or_default()
    )
}

/// Lines include their endings.
struct ConfigLines {
    lines: Vec<String>,
    end: &'static str,
}

impl ConfigLines {
    fn of(text: &str) -> ConfigLines {
        ConfigLines {
            lines: text.split_inclusive('\n').map(str::to_owned).collect(),
            end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        }
    }

    fn text(&self) -> String {
        self.lines.concat()
    }

    /// Finds a top-level key: its line and the text after the colon.
    fn find(&self, key: &str) -> Option<(usize, String)> {
        self.lines.iter().enumerate().find_map(|(at, line)| {
            let after_colon = line.strip_prefix(key)?.strip_prefix(':')?;
            let is_key = after_colon.is_empty() || after_colon.starts_with([' ', '\t', '\r', '\n']);
            is_key.then(|| (at, after_colon.to_owned()))
        })
    }

    fn insert(&mut self, at: usize, line: &str) {
        // The previous line can be the last one and lack a line ending.
        let before = at.checked_sub(1).and_then(|at| self.lines.get_mut(at));
        if let Some(before) = before.filter(|before| !before.ends_with('\n')) {
            before.push_str(self.end);
        }
        self.lines.insert(at, format!("{line}{}", self.end));
    }

    /// Keeps a trailing comment.
    fn set_model(&mut self, model: &str) {
        if let Some((at, after_colon)) = self.find("model") {
            let tail = text_after_value(&after_colon);
            self.lines[at] = format!("model: {model}{tail}");
            return;
        }

        let at = self.find("models").map_or(self.lines.len(), |(at, _)| at);
        self.insert(at, &format!("model: {model}"));
    }

    fn add_entry(&mut self, name: &str, entry: &str) -> Result<(), EditRefusal> {
        let Some((at, after_colon)) = self.find("models") else {
            let end = self.lines.len();
            self.insert(end, "models:");
            self.insert(end + 1, &format!("  {name}: {entry}"));
            return Ok(());
        };

        let value = after_colon.trim_start();
        if value.is_empty() || value.starts_with('#') {
            let indent = self.indent_below(at);
            self.insert(at + 1, &format!("{indent}{name}: {entry}"));
            return Ok(());
        }

        let inner = value.strip_prefix('{').ok_or(EditRefusal::Layout)?;
        let comma = if inner.trim_start().starts_with('}') {
            ""
        } else {
            ","
        };
        self.lines[at] = format!(
            "models: {{ {name}: {entry}{comma}{}",
            with_leading_space(inner)
        );
        Ok(())
    }

    fn indent_below(&self, at: usize) -> String {
        let is_content = |line: &&String| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        };
        let first = self.lines[at + 1..].iter().find(is_content);
        let indent = first.map_or("", |line| &line[..line.len() - line.trim_start().len()]);
        if indent.is_empty() { "  " } else { indent }.to_owned()
    }
}

/// Whitespace, comment and line ending.
fn text_after_value(after_colon: &str) -> &str {
    let value = after_colon.trim_start_matches([' ', '\t']);
    let end = match value.chars().next() {
        Some('"') => value[1..].find('"').map_or(value.len(), |at| at + 2),
        Some('\'') => value[1..].find('\'').map_or(value.len(), |at| at + 2),
        // Keep the space before `#`: without it, the comment would become part of the value.
        Some('#') => return &after_colon[after_colon.len() - value.len() - 1..],
        _ => {
            let marks = [" #", "\t#"].iter().filter_map(|mark| value.find(mark));
            let end = marks.min().unwrap_or(value.len());
            value[..end].trim_end().len()
        }
    };
    &value[end..]
}

fn with_leading_space(inner: &str) -> String {
    if inner.starts_with([' ', '\t', '\r', '\n']) {
        inner.to_owned()
    } else {
        format!(" {inner}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::ProptestConfig;

    use super::*;
    use crate::config::settings::ModelKind;

    fn claude() -> NewModel {
        NewModel {
            model: "claude".to_owned(),
            entry: Some(ModelSettings {
                kind: ModelKind::Command,
                run: ["claude", "-p", "--tools", ""].map(str::to_owned).to_vec(),
                timeout: Some(Duration::from_secs(900)),
                ..ModelSettings::default()
            }),
        }
    }

    const ENTRY: &str =
        r#"claude: { kind: command, run: [claude, -p, --tools, ""], timeout: 900 }"#;

    /// `ENTRY` in `expected` stands for the entry.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let written = claude().written(text);
        assert_eq!(written, Ok(expected.replace("ENTRY", ENTRY)), "{text}");
    }

    /// Checks that the edit is refused.
    #[track_caller]
    fn refuse(text: &str) {
        let written = claude().written(text);
        assert!(written.is_err(), "{text}\n{written:?}");
    }

    #[test]
    fn cf7_a_model_is_written_into_an_empty_file() {
        check("", "model: claude\nmodels:\n  ENTRY\n");
        check("# mine\n", "# mine\nmodel: claude\nmodels:\n  ENTRY\n");
        check("agent: x", "agent: x\nmodel: claude\nmodels:\n  ENTRY\n");
    }

    #[test]
    fn cf7_every_other_line_stays_as_it_is() {
        check(
            "# top\nmodel: gpt   # the old one\n\nmodels: # all\n    # of mine\n    gpt: { kind: openai, id: gpt-5 }   # dear\nlimits: {cost: 1}\n# end",
            "# top\nmodel: claude   # the old one\n\nmodels: # all\n    ENTRY\n    # of mine\n    gpt: { kind: openai, id: gpt-5 }   # dear\nlimits: {cost: 1}\n# end",
        );
        check(
            "agent: x\r\nmodel: \"a # b\" # c\r\n",
            "agent: x\r\nmodel: claude # c\r\nmodels:\r\n  ENTRY\r\n",
        );
        check(
            "models: {gpt: { kind: openai, id: gpt-5 }}\nagent: x\n",
            "model: claude\nmodels: { ENTRY, gpt: { kind: openai, id: gpt-5 }}\nagent: x\n",
        );
        check("models: {}\n", "model: claude\nmodels: { ENTRY }\n");
        check(
            "model: # none yet\n",
            "model: claude # none yet\nmodels:\n  ENTRY\n",
        );
        check(
            "models:\nagent: x\n",
            "model: claude\nmodels:\n  ENTRY\nagent: x\n",
        );
    }

    #[test]
    fn cf7_a_layout_that_is_not_known_is_left_alone() {
        refuse("{ agent: x }\n");
        refuse("\"model\": gpt\n");
        refuse("model: >\n  gpt\n");
        refuse("model: &a gpt\nagent: *a\n");
        refuse("models: &all\n  gpt: { kind: openai, id: gpt-5 }\n");
        refuse("models: [a]\n");
        refuse("agent: x\n...\n");
        refuse("agent: [\n");
        refuse("- a\n");
        refuse(&"a".repeat(70_000));
    }

    #[test]
    fn cf7_nobodys_entry_is_overwritten() {
        let other = "models:\n  claude: { kind: command, run: [claude] }\n";
        let fitted = claude().fitted(other);
        assert_eq!(fitted.model, "claude-2");
        assert_eq!(
            fitted.written(other),
            Ok(format!(
                "model: claude-2\nmodels:\n  {}\n  claude: {{ kind: command, run: [claude] }}\n",
                ENTRY.replacen("claude", "claude-2", 1)
            ))
        );

        let same = claude().written("").unwrap();
        let fitted = claude().fitted(&same);
        assert_eq!(fitted.entry, None);
        assert_eq!(fitted.written(&same), Ok(same));
    }

    #[test]
    fn a_text_means_itself() {
        for text in [
            "a",
            "a b",
            "true",
            "12",
            "1e3",
            "~",
            "-",
            "- a",
            "a: b",
            "a #b",
            "\"",
            "'",
            "\u{e9}\n",
            "{x}",
            "",
            "qwen3:30b",
            "*a",
            "-p",
            "0x1f",
            "null",
            "2026-01-01",
        ] {
            let read: Value = serde_yaml::from_str(&format!("[{}]", scalar(text))).unwrap();
            assert_eq!(read[0].as_str(), Some(text), "{}", scalar(text));
        }
        assert_eq!(scalar("-p"), "-p");
        assert_eq!(scalar("qwen3:30b"), "\"qwen3:30b\"");
    }

    #[test]
    fn the_lines_for_a_hand_are_what_would_be_written() {
        assert_eq!(Ok(claude().lines()), claude().written(""));
        let bare = NewModel {
            model: "openai:gpt-5".to_owned(),
            entry: None,
        };
        assert_eq!(bare.lines(), "model: \"openai:gpt-5\"\n");
        assert_eq!(
            bare.written("agent: x\n"),
            Ok("agent: x\nmodel: \"openai:gpt-5\"\n".to_owned())
        );
    }

    /// Lines of random configurations.
    const LINES: [&str; 16] = [
        "# a comment",
        "",
        "model: gpt # why",
        "model:",
        "models:",
        "models: # all",
        "models: {}",
        "models: {a: {kind: manual}}",
        "  gpt: { kind: openai, id: gpt-5 }",
        "  claude: { kind: manual }",
        "  # deeper",
        "agent: x",
        "limits:",
        "  cost: 1",
        "preview_command: |",
        "  model: not one",
    ];

    proptest::proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn cf7_whatever_is_written_no_other_line_changes(
            chosen in proptest::collection::vec(0..LINES.len(), 0..9),
            end in proptest::sample::select(vec!["\n", "\r\n"]),
            is_ended in proptest::bool::ANY,
        ) {
            let lines: Vec<&str> = chosen.iter().map(|&at| LINES[at]).collect();
            let text = lines.join(end) + if is_ended { end } else { "" };
            let model = claude().fitted(&text);
            if let Ok(written) = model.written(&text) {
                let mut after = written.lines();
                let other_lines = text.lines().filter(|line| !line.starts_with("model"));
                for line in other_lines {
                    proptest::prop_assert!(after.any(|written_line| written_line == line), "{line:?} in {written:?}");
                }
                let again = claude().fitted(&written);
                proptest::prop_assert_eq!(again.written(&written), Ok(written));
            }
        }
    }
}
