//! The lines of a configuration file: where a key stands, and how one is added without a change of
//! any other line.

use super::EditRefusal;

/// The lines of a file, with their ends.
pub(super) struct ConfigLines {
    /// The lines.
    lines: Vec<String>,
    /// How a line ends here.
    end: &'static str,
}

impl ConfigLines {
    /// Splits a text.
    pub(super) fn of(text: &str) -> ConfigLines {
        ConfigLines {
            lines: text.split_inclusive('\n').map(str::to_owned).collect(),
            end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        self.lines.concat()
    }

    /// Returns the line with a key of the whole file, and what stands behind the colon.
    fn find(&self, key: &str) -> Option<(usize, String)> {
        self.lines.iter().enumerate().find_map(|(at, line)| {
            let rest = line.strip_prefix(key)?.strip_prefix(':')?;
            let is_key = rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']);
            is_key.then(|| (at, rest.to_owned()))
        })
    }

    /// Puts a line before another one, or at the end.
    fn insert(&mut self, at: usize, line: &str) {
        // The last line may have no end yet.
        let before = at.checked_sub(1).and_then(|at| self.lines.get_mut(at));
        if let Some(before) = before.filter(|before| !before.ends_with('\n')) {
            before.push_str(self.end);
        }
        self.lines.insert(at, format!("{line}{}", self.end));
    }

    /// Sets `model`; a comment behind it stays.
    pub(super) fn set_model(&mut self, model: &str) {
        if let Some((at, rest)) = self.find("model") {
            let behind = behind(&rest);
            self.lines[at] = format!("model: {model}{behind}");
            return;
        }

        let at = self.find("models").map_or(self.lines.len(), |(at, _)| at);
        self.insert(at, &format!("model: {model}"));
    }

    /// Adds an entry to `models`.
    pub(super) fn add_entry(&mut self, name: &str, entry: &str) -> Result<(), EditRefusal> {
        let Some((at, rest)) = self.find("models") else {
            let end = self.lines.len();
            self.insert(end, "models:");
            self.insert(end + 1, &format!("  {name}: {entry}"));
            return Ok(());
        };

        let value = rest.trim_start();
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
        self.lines[at] = format!("models: {{ {name}: {entry}{comma}{}", spaced(inner));
        Ok(())
    }

    /// Returns the indentation of what stands below a key.
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

/// Returns what stands behind a value in its line: blanks, a comment, the end.
fn behind(rest: &str) -> &str {
    let value = rest.trim_start_matches([' ', '\t']);
    let end = match value.chars().next() {
        Some('"') => value[1..].find('"').map_or(value.len(), |at| at + 2),
        Some('\'') => value[1..].find('\'').map_or(value.len(), |at| at + 2),
        // A comment without a value needs the blank before it.
        Some('#') => return &rest[rest.len() - value.len() - 1..],
        _ => {
            let marks = [" #", "\t#"].iter().filter_map(|mark| value.find(mark));
            let end = marks.min().unwrap_or(value.len());
            value[..end].trim_end().len()
        }
    };
    &value[end..]
}

/// Returns what follows in a flow mapping, with a blank before it.
fn spaced(inner: &str) -> String {
    if inner.starts_with([' ', '\t', '\r', '\n']) {
        inner.to_owned()
    } else {
        format!(" {inner}")
    }
}
