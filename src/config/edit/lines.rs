//! Line-based editor for configuration files. Finds top-level keys and inserts lines.

use super::EditRefusal;

/// A file as lines, including line endings.
pub(super) struct ConfigLines {
    lines: Vec<String>,
    /// Line ending for new lines.
    end: &'static str,
}

impl ConfigLines {
    pub(super) fn of(text: &str) -> ConfigLines {
        ConfigLines {
            lines: text.split_inclusive('\n').map(str::to_owned).collect(),
            end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        }
    }

    pub(super) fn text(&self) -> String {
        self.lines.concat()
    }

    /// Finds a top-level key. Returns its line number and the text after the colon.
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

    /// Sets `model`. Keeps a trailing comment.
    pub(super) fn set_model(&mut self, model: &str) {
        if let Some((at, after_colon)) = self.find("model") {
            let tail = text_after_value(&after_colon);
            self.lines[at] = format!("model: {model}{tail}");
            return;
        }

        let at = self.find("models").map_or(self.lines.len(), |(at, _)| at);
        self.insert(at, &format!("model: {model}"));
    }

    pub(super) fn add_entry(&mut self, name: &str, entry: &str) -> Result<(), EditRefusal> {
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

    /// Returns the indentation of the first entry below a key.
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

/// Returns the text after a value: whitespace, comment and line ending.
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

/// Makes the rest of a flow mapping start with whitespace.
fn with_leading_space(inner: &str) -> String {
    if inner.starts_with([' ', '\t', '\r', '\n']) {
        inner.to_owned()
    } else {
        format!(" {inner}")
    }
}
