//! Respells the fields and the heading of an action, and moves texts from fields into blocks.

use super::Speller;
use crate::plan::action::BodyShape;
use crate::plan::line::key::{self, COMMAND, KeyedLine, MAX_VALUE, QUERY};
use crate::plan::line::name::{ActionHeading, text_below};
use crate::plan::line::prose::without_code;
use crate::plan::line::{field_item, indent_of, is_fence, split_item, unlisted, value};
use crate::plan::spelling::passage::Passage;
use crate::text::fence::fence_for;
use crate::text::link;
use crate::text::resource::is_url;

impl Speller<'_, '_> {
    /// Respells a field. `below` lists the lines nested in it; `None` if the field is a single
    /// line.
    pub(super) fn field(&mut self, line: usize, field: KeyedLine<'_>, sub_items: Option<&[usize]>) {
        let KeyedLine { key, value } = field;
        match key {
            COMMAND | QUERY => return self.text_in_field(line, field, sub_items),
            "File Path" | "Resource" => return self.path(line, field),
            "Agent" => self.agent = true,
            _ => {}
        }

        let shows = key == "Expected Outcome" && value.is_empty() && sub_items.is_none();
        if shows && is_fence(text_below(self.lines, line)) {
            return;
        }

        if sub_items.is_none() && is_optional_field(key) && value::is_nothing_for(key, value) {
            self.edits
                .leave_out(line..=line, "the field without a value");
            return;
        }

        if let Some(nested) = sub_items
            && key == "Handoff Resources"
            && let [only] = nested
            && value::is_nothing(unlisted(self.lines.get(*only)))
        {
            self.edits
                .leave_out(*only..=*only, "the item without a value");
        }

        let new_value = self.value(field).filter(|_| sub_items.is_none());
        if new_value.as_deref() == Some("") {
            self.edits.leave_out(line..=line, "the field");
            return;
        }

        self.write_field(line, field, new_value.as_deref());
    }

    /// Returns the value in the form that the parser reads, if it differs. Empty if the value
    /// equals the default, so that the field can be removed.
    fn value(&self, field: KeyedLine<'_>) -> Option<String> {
        match field.key {
            "Timeout" => value::seconds(field.value).map(|seconds| seconds.to_string()),
            "cwd" if value::is_root(field.value) => Some(String::new()),
            "cwd" => value::path(field.value)
                .filter(|path| link::read(field.value).as_ref() != Ok(path))
                .map(|path| link::write_path(&path)),
            _ => None,
        }
    }

    /// Respells a path. A repetition of the same path is removed.
    fn path(&mut self, line: usize, field: KeyedLine<'_>) {
        let name = value::path(field.value).or_else(|| link::read(field.value).ok());
        if name.is_some() && name == self.target {
            self.edits
                .leave_out(line..=line, "the second field of one path");
            return;
        }

        let exact = link::read(field.value).ok() == name;
        let spelled = name.as_deref().filter(|name| !exact && !is_url(name));
        let new_value = spelled.map(link::write_path);
        self.target = name;
        self.write_field(line, field, new_value.as_deref());
    }

    /// Writes a field exactly, unless the parser reads it correctly as it is.
    fn write_field(&mut self, line: usize, field: KeyedLine<'_>, new_value: Option<&str>) {
        let text = self.lines.get(line);
        let read = split_item(text);
        let exact = read.is_some_and(|(key, value)| {
            field_item::canonical(key) == Some(field.key) && value == field.value
        });

        // At the end of a line outside a list, a backslash is only a line break.
        let listed = unlisted(text) != text.trim_start();
        let breaks = !listed && text.ends_with('\\');
        let plain = match field.value.strip_suffix('\\') {
            Some(plain) if breaks => plain.trim_end(),
            _ => field.value,
        };
        let same = new_value.is_none_or(|new_value| new_value == field.value);
        if exact && same {
            return;
        }

        let value = new_value.unwrap_or(plain);
        let blank = if value.is_empty() { "" } else { " " };
        let indent = if listed { indent_of(text) } else { "" };

        let key = field.key;
        self.edits
            .replace(line, format!("{indent}- **{key}:**{blank}{value}"));
        let original = text.trim();
        let read = match () {
            () if value != plain => format!("read `{original}` as `{key}: {value}`"),
            () if original.contains(key) => format!("read `{original}` as a field"),
            () => format!("read `{original}` as `{key}`"),
        };

        self.edits.add_note(line, read);
    }

    /// Records the text of a field that belongs in a block.
    fn text_in_field(&mut self, line: usize, field: KeyedLine<'_>, sub_items: Option<&[usize]>) {
        if !self.fenced.is_empty() {
            return;
        }

        let nested = sub_items.unwrap_or_default();
        let items = nested.iter().map(|&line| unlisted(self.lines.get(line)));
        let texts = std::iter::once(field.value).chain(items);
        let texts: Vec<&str> = texts
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .collect();

        // Without backticks, a command cannot be distinguished from text about a command.
        let clear = match texts[..] {
            [only] => field.key == QUERY || unquoted(only) != only,
            _ => field.key == QUERY,
        };
        if !clear || (sub_items.is_some() && nested.is_empty()) {
            return;
        }

        self.edits
            .add_note(line, format!("put `{}` into a code block", field.key));
        self.edits.remove(line);
        nested.iter().for_each(|&line| self.edits.remove(line));
        let texts = texts.iter().map(|text| unquoted(text).to_owned());
        self.blocks.extend(texts);
    }

    /// Appends the blocks for texts recorded from fields.
    pub(super) fn add_blocks(&mut self, passage: &Passage) {
        let language = if self.row.shape == BodyShape::Script {
            "shell"
        } else {
            "text"
        };
        for text in std::mem::take(&mut self.blocks) {
            let fence = fence_for(&text, 4);
            self.edits.insert(passage.end, "");
            self.edits.insert(passage.end, format!("{fence}{language}"));
            self.edits.insert(passage.end, text);
            self.edits.insert(passage.end, fence);
            self.edits.insert(passage.end, "");
        }
    }

    /// Returns whether the heading of a command contains another command than the block.
    fn names_another_command(&self, heading: &ActionHeading) -> bool {
        if heading.suffix.len() > MAX_VALUE {
            return true;
        }

        let quoted = heading.suffix.split('`').skip(1).step_by(2);
        let is_run = |command: &str| {
            let blocks = self.fenced.iter().cloned();
            let mut texts = blocks.map(|lines| self.lines.span(lines));
            texts.any(|text| text.contains(command))
                || self.blocks.iter().any(|text| text.contains(command))
        };
        self.row.shape == BodyShape::Script && !quoted.into_iter().all(is_run)
    }

    /// Returns whether the heading of a command says something beside the name that its description
    /// does not: `(not yet)`. Words that continue the name, as in `Run the tests`, are its title.
    fn has_more_text(&self, line: usize, heading: &ActionHeading) -> bool {
        let text = self.lines.get(line);
        let tail = without_code(&heading.suffix);
        if plain_words(&tail).is_empty() {
            return false;
        }

        let before = text
            .find(heading.suffix.as_str())
            .map_or("", |at| &text[..at]);
        let joined = before.ends_with(' ')
            && before
                .trim_end()
                .ends_with(|c: char| c.is_alphanumeric() || matches!(c, '`' | '*'));
        let described = (line + 1..=self.lines.len())
            .map_while(|line| {
                let text = self.lines.get(line);
                (!is_fence(text) && !text.starts_with('#')).then_some(text)
            })
            .filter_map(|text| key::field(text, Some(self.row)))
            .any(|field| {
                let description = plain_words(field.value);
                description.contains(&plain_words(&tail))
            });
        let titled = joined && !before.trim_end().ends_with('`');
        !(titled || described)
    }

    /// Writes the heading as the format does, and what it says behind the name as a field. A
    /// heading that names something else than the field below it stays as it is.
    pub(super) fn heading(&mut self, line: usize, heading: &ActionHeading) {
        if heading.exact {
            return;
        }

        let target = heading.target();
        let differs = match (&target, &self.target) {
            (Some(target), Some(other)) => target != other,
            _ => false,
        };
        if differs || self.names_another_command(heading) {
            return;
        }

        let name = self.row.name;
        let original = self.lines.get(line).trim();
        let read = format!("read `{original}` as the action {name}");
        if self.row.shape.reaches_outside() && self.has_more_text(line, heading) {
            self.edits.add_aside(line, read);
        } else {
            self.edits.add_note(line, read);
        }
        self.edits.replace(line, format!("### `{name}`"));

        let row = self.row;
        if row.keys.contains(&"Agent") && !self.agent && !heading.suffix.is_empty() {
            let agent = heading.suffix.trim_matches(['`', '*', ' ']);
            self.edits.insert(line + 1, format!("- **Agent:** {agent}"));
        } else if row.is_message_alone() && !heading.suffix.is_empty() {
            self.edits.insert(line + 1, heading.suffix.as_str());
            self.edits.insert(line + 1, "");
        }

        let key = row.target_key().filter(|_| self.target.is_none());
        if let Some((key, target)) = key.zip(target) {
            let link = if is_url(&target) {
                link::write_url(&target)
            } else {
                link::write_path(&target)
            };
            self.edits.insert(line + 1, format!("- **{key}:** {link}"));
        }
    }
}

/// Returns a text in lower case with single spaces.
fn plain_words(text: &str) -> String {
    let tokens = text.split(|c: char| !c.is_alphanumeric());
    let tokens: Vec<String> = tokens
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    tokens.join(" ")
}

/// Returns whether a field may be left out.
fn is_optional_field(key: &str) -> bool {
    !matches!(
        key,
        "File Path" | "Resource" | "Agent" | "Description" | "Expected Outcome"
    )
}

fn unquoted(text: &str) -> &str {
    let inner = text
        .strip_prefix('`')
        .and_then(|tail| tail.strip_suffix('`'));
    inner
        .filter(|inner| !inner.contains('`') && !inner.is_empty())
        .unwrap_or(text)
}
