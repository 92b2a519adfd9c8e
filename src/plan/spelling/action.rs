//! Respells one action: its heading, fields and labels, and the text next to its blocks.

use std::ops::{Range, RangeInclusive};

use super::edits::LineEdits;
use super::extra::ExtraBlocks;
use super::passage::{Passage, PassageRole};
use crate::plan::action::{ActionRow, BodyShape};
use crate::plan::diagnostic::quote;
use crate::plan::line::condition::{is_aside, is_limiting, is_output};
use crate::plan::line::field_item::canonical;
use crate::plan::line::key::{self, COMMAND, KeyedLine, MAX_VALUE, QUERY};
use crate::plan::line::name::{self, ActionHeading, text_below};
use crate::plan::line::prose::without_code;
use crate::plan::line::{
    self, Label, field_item, indent_of, is_fence, prose, split_item, unlisted, value,
};
use crate::text::fence::fence_for;
use crate::text::has_word;
use crate::text::link;
use crate::text::markdown::{BlockKind, Item, Lines, MarkdownBlock};
use crate::text::resource::is_url;

/// State while an action is respelled.
struct Speller<'a, 'b> {
    lines: &'a Lines<'a>,
    row: &'static ActionRow,
    edits: &'b mut LineEdits<'a>,
    /// Path or resource that a field names.
    target: Option<String>,
    /// Whether a field names the receiving agent.
    agent: bool,
    /// Texts from fields that become blocks.
    blocks: Vec<String>,
    /// Lines of its code blocks.
    fenced: Vec<Range<usize>>,
    /// Whether FIND and REPLACE occur in the format's own words. Other words are not labels then.
    labelled: [bool; 2],
    /// Whether a message above announces the action. Text after its blocks can belong to that
    /// message.
    proposed: bool,
}

/// Respells an action in the format's spelling. `proposed`: a message above announces it; `is_last`:
/// no other action follows.
pub(super) fn respell<'a>(
    passage: &Passage,
    blocks: &[MarkdownBlock],
    proposed: bool,
    is_last: bool,
    edits: &mut LineEdits<'a>,
) {
    let PassageRole::Action(heading) = &passage.role else {
        return;
    };
    let lines = edits.lines;
    let extra = ExtraBlocks {
        lines,
        row: heading.row,
        blocks,
        is_last,
    };
    let remaining = extra.respell(passage, edits);
    let mut speller = Speller {
        lines,
        row: heading.row,
        edits,
        target: None,
        agent: false,
        blocks: Vec::new(),
        fenced: blocks
            .iter()
            .filter_map(|block| Some(block.fenced()?.line_range.clone()))
            .collect(),
        labelled: own_labels(lines, blocks),
        proposed,
    };

    for (index, block) in blocks[..remaining].iter().enumerate() {
        let above = index.checked_sub(1).map(|above| &blocks[above]);
        if above.is_some_and(|above| speller.nests(above, block)) {
            continue;
        }

        let goes_on = speller.block(block);
        if passage.is_message() && !goes_on {
            break;
        }
    }

    speller.heading(passage.line, heading);
    speller.add_blocks(passage);
}

/// Returns whether FIND and REPLACE occur in the format's own words.
fn own_labels(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> [bool; 2] {
    let text_blocks = blocks.iter().filter(|block| block.fenced().is_none());
    let labels: Vec<Label> = text_blocks
        .flat_map(|block| block.lines())
        .filter_map(|line| name::own_label(lines.get(line)))
        .collect();
    [Label::Find, Label::Replace].map(|label| labels.contains(&label))
}

impl Speller<'_, '_> {
    /// Respells a block. Returns whether further fields of an action with a message can follow it.
    fn block(&mut self, block: &MarkdownBlock) -> bool {
        match &block.node {
            BlockKind::List { items, .. } => {
                let fields = items.iter().all(|item| self.item(item));
                if !self.row.is_message() {
                    self.fields_in_items(block);
                }
                fields
            }
            BlockKind::Paragraph => self.paragraph(block.first, block.last),
            BlockKind::Heading {
                level,
                setext: false,
                text,
            } if !self.row.is_message() => {
                let read = *level > 3 && line::label(text).is_some();
                self.heading_below(block.first, read);
                true
            }
            BlockKind::Quote if !self.row.is_message() => {
                self.quotation(block);
                true
            }
            _ => false,
        }
    }

    /// Nests a list into the bulletless field above it. Returns whether it belongs there.
    fn nests(&mut self, above: &MarkdownBlock, list: &MarkdownBlock) -> bool {
        let line = above.last;
        let field = key::field(self.lines.get(line), Some(self.row));
        let open = field.is_some_and(|field| {
            field.value.is_empty() && ["env", "Handoff Resources"].contains(&field.key)
        });
        let nests = open
            && above.node == BlockKind::Paragraph
            && matches!(list.node, BlockKind::List { .. })
            && list.first == line + 1;

        if nests {
            for line in list.lines() {
                self.edits
                    .replace(line, format!("    {}", self.lines.get(line)));
            }
        }

        nests
    }

    /// Respells lines below an item that are marked as separate fields.
    fn fields_in_items(&mut self, list: &MarkdownBlock) {
        for line in list.lines() {
            if let Some(field) = key::unlisted_field(self.lines.get(line), self.row) {
                self.field(line, field, None);
            }
        }
    }

    /// Respells an item: a field or a label. Returns whether it is a field.
    fn item(&mut self, item: &Item) -> bool {
        let line = item.first;
        let text = self.lines.get(line);
        let first = item.blocks.first();
        let last = first
            .filter(|block| block.node == BlockKind::Paragraph)
            .map_or(line, |block| block.last);

        if let Some(label) = self.label(line) {
            if line::label(unlisted(text)).is_none() {
                let indent = &text[..text.len() - text.trim_start().len()];
                self.write_label(line, &format!("{indent}- "), label);
            }
            return false;
        }

        let lists = item
            .blocks
            .iter()
            .filter(|block| matches!(block.node, BlockKind::List { .. }));
        let nested: Vec<usize> = lists.flat_map(|block| block.lines()).collect();
        let Some(field) = key::field(text, Some(self.row)) else {
            return self.unknown_item(line);
        };

        for more in line + 1..=last {
            if let Some(label) = self.label(more) {
                self.separate_label(more, label);
            }
        }

        let alone = last == line && item.blocks.len() <= 1;
        self.field(line, field, if alone { None } else { Some(&nested) });
        true
    }

    /// Respells an item with an unknown key. The only link of an action without a path is its path.
    fn unknown_item(&mut self, line: usize) -> bool {
        let text = self.lines.get(line);
        let Some(target_key) = self.row.target_key() else {
            return false;
        };
        let linked = key::split(text).filter(|(key, value)| {
            canonical(key).is_none() && value.starts_with('[') && link::read(value).is_ok()
        });
        let Some((_, value)) = linked.filter(|_| self.target.is_none()) else {
            return false;
        };

        let field = KeyedLine {
            key: target_key,
            value,
        };
        self.field(line, field, None);
        true
    }

    /// Respells a paragraph: fields without bullets, labels, sentences. Returns whether it consists
    /// of fields only.
    fn paragraph(&mut self, first: usize, last: usize) -> bool {
        let (lines, row) = (self.lines, self.row);
        let keyed = |line: usize| key::field(lines.get(line), Some(row));
        if keyed(first).is_some() {
            let until = (first..=last)
                .find(|&line| self.label(line).is_some() || is_fence(self.lines.get(line)))
                .unwrap_or(last + 1);
            for line in first..until {
                match keyed(line) {
                    // The command can continue on the next line.
                    Some(field)
                        if field.key == COMMAND
                            && line + 1 < until
                            && keyed(line + 1).is_none() => {}
                    Some(field) => self.field(line, field, None),
                    None if self.row.is_message() => {
                        self.edits.insert(line, "");
                        return false;
                    }
                    None => self.more_of_field(line),
                }
            }

            if until <= last {
                self.edits.insert(until, "");
                self.respell_text(until, last);
            }

            return until > last;
        }

        if !self.row.is_message() {
            self.respell_text(first, last);
        }

        false
    }

    /// Respells lines of text: labels are written exactly, sentences are removed.
    fn respell_text(&mut self, first: usize, last: usize) {
        let mut start = first;
        for line in first..=last + 1 {
            let label = (line <= last).then(|| self.label(line)).flatten();
            if label.is_none() && line <= last {
                continue;
            }

            if start < line {
                self.leave_out_words(start, line - 1);
            }

            if let Some(label) = label
                && line::label(self.lines.get(line)).is_none()
            {
                self.write_label(line, "", label);
            }
            start = line + 1;
        }
    }

    /// Removes sentences, with two exceptions: above a command's block they can say that it is
    /// output, and after an action that a message announces they can belong to the message.
    fn leave_out_words(&mut self, first: usize, last: usize) {
        let texts = self.lines.texts(first..=last);
        let follows_code = self.fenced.iter().all(|block| block.start < first);
        let is_output_text =
            self.row.shape == BodyShape::Script && !follows_code && is_output(&texts.join(" "));
        if is_output_text || (follows_code && self.proposed) {
            return;
        }

        self.leave_out(first..=last, &texts);
    }

    /// Takes a line below a field without a bullet for more of the field.
    fn more_of_field(&mut self, line: usize) {
        let text = self.lines.get(line).trim();
        self.edits.replace(line, format!("  {text}"));
        let own = self.row.shape.reaches_outside()
            && prose::is_sentence_of_its_own(self.lines.get(line - 1), text);
        if own {
            let message = format!("took \"{}\" for more of the field above", quote(text));
            self.edits.add_aside(line, message);
        }
    }

    /// Takes a heading below the action's own: a label, or a word above a block that says nothing.
    fn heading_below(&mut self, line: usize, is_read: bool) {
        match self.label(line) {
            Some(_) if is_read => {}
            Some(label) => self.write_label(line, "", label),
            None if is_aside(self.lines.get(line)) || is_output(self.lines.get(line)) => {}
            None if is_fence(text_below(self.lines, line)) || self.label_follows(line) => {
                self.edits.leave_out(line..=line, "the heading");
            }
            None => {}
        }
    }

    /// Removes a quotation without meaning for the plan.
    fn quotation(&mut self, block: &MarkdownBlock) {
        let mut texts = self.lines.texts(block.lines());
        for text in &mut texts {
            *text = text.trim_start().trim_start_matches(['>', ' ']);
        }
        self.leave_out(block.lines(), &texts);
    }

    fn leave_out(&mut self, lines: RangeInclusive<usize>, texts: &[&str]) {
        if self.row.shape.reaches_outside() {
            self.edits.leave_out_asides(lines, texts);
        } else {
            self.edits.leave_out_words(lines, texts);
        }
    }

    fn label(&self, line: usize) -> Option<Label> {
        if !self.row.has_labels() {
            return None;
        }

        let text = self.lines.get(line);
        let plain = unlisted(text).trim_start_matches('#');
        let other = || {
            let label = name::label(text, text_below(self.lines, line))?;
            let has_label = self.labelled[usize::from(label == Label::Replace)];
            (!has_label || name::own_label(text).is_some()).then_some(label)
        };

        line::label(plain).or_else(other)
    }

    fn label_follows(&self, line: usize) -> bool {
        let next =
            (line + 1..=self.lines.len()).find(|&number| !self.lines.get(number).trim().is_empty());
        next.is_some_and(|number| self.label(number).is_some())
    }

    fn write_label(&mut self, line: usize, before: &str, label: Label) {
        let name = if label == Label::Find {
            "FIND"
        } else {
            "REPLACE"
        };

        let original = self.lines.get(line).trim();
        self.edits
            .add_note(line, format!("read `{original}` as {name}"));
        let marks = if before.is_empty() { "`" } else { "" };
        self.edits
            .replace(line, format!("{before}{marks}{name}:{marks}"));
    }

    /// Separates a label from the field above it.
    fn separate_label(&mut self, line: usize, label: Label) {
        if line::label(self.lines.get(line).trim()).is_none() {
            self.edits.insert(line, "");
            self.write_label(line, "", label);
        }
    }
}

impl Speller<'_, '_> {
    /// Respells a field. `below` lists the lines nested in it; `None` if the field is a single
    /// line.
    fn field(&mut self, line: usize, field: KeyedLine<'_>, sub_items: Option<&[usize]>) {
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
    fn add_blocks(&mut self, passage: &Passage) {
        let language = if self.row.shape == BodyShape::Script {
            "shell"
        } else {
            "text"
        };
        for text in std::mem::take(&mut self.blocks) {
            let fence = fence_for(&text, 4);
            let opener = format!("{fence}{language}");
            for line in ["", &opener, &text, &fence, ""] {
                self.edits.insert(passage.end, line);
            }
        }
    }

    /// Returns whether the heading of a command contains another command than the block.
    fn names_another_command(&self, heading: &ActionHeading) -> bool {
        if heading.suffix.len() > MAX_VALUE {
            return true;
        }

        let mut quoted = heading.suffix.split('`').skip(1).step_by(2);
        self.row.shape == BodyShape::Script && !quoted.all(|command| self.is_in_block(command))
    }

    fn is_in_block(&self, words: &str) -> bool {
        let blocks = self.fenced.iter().cloned();
        let mut texts = blocks.map(|lines| self.lines.span(lines));
        texts.any(|text| text.contains(words))
            || self.blocks.iter().any(|text| text.contains(words))
    }

    /// Returns whether the heading of a command says something beside the name that its description
    /// does not: `(not yet)`. Words that continue a sentence, as in `Run the tests`, are its title.
    fn has_more_text(&self, line: usize, heading: &ActionHeading) -> bool {
        let text = self.lines.get(line);
        let tail = without_code(&heading.suffix);
        if plain_words(&tail).is_empty() {
            return false;
        }

        let before = text
            .find(heading.suffix.as_str())
            .map_or("", |at| text[..at].trim_end());
        let verb = before.rsplit(' ').next().unwrap_or_default();
        let is_sentence = verb.chars().all(char::is_alphabetic) && verb.to_uppercase() != verb;
        let phrase = plain_words(&tail);
        let first = phrase.split(' ').next().unwrap_or_default();
        let has_limit = phrase
            .split(' ')
            .any(|word| has_word(LIMITS, word) || is_limiting(word));
        let is_object = has_word(ARTICLES, first) || self.is_in_block(first);
        if is_sentence && phrase.is_ascii() && is_object && !has_limit {
            return false;
        }
        let described = (line + 1..=self.lines.len())
            .map_while(|line| {
                let text = self.lines.get(line);
                (!is_fence(text) && !text.starts_with('#')).then_some(text)
            })
            .filter_map(|text| key::field(text, Some(self.row)))
            .any(|field| plain_words(field.value).contains(&phrase));
        !described
    }

    /// Writes the heading as the format does, and what it says behind the name as a field. A
    /// heading that names something else than the field below it stays as it is.
    fn heading(&mut self, line: usize, heading: &ActionHeading) {
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

/// First words of what a verb is about.
const ARTICLES: &str = "the a an all any our my your its these this that new";
/// Words that can limit when or how it is done.
const LIMITS: &str = "after before only once when until unless without must may by who manually";

fn plain_words(text: &str) -> String {
    let tokens = text.split(|c: char| !c.is_alphanumeric());
    let tokens: Vec<String> = tokens
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    tokens.join(" ")
}

fn is_optional_field(key: &str) -> bool {
    !matches!(
        key,
        "File Path" | "Resource" | "Agent" | "Description" | "Expected Outcome"
    )
}

fn unquoted(text: &str) -> &str {
    let inner = value::unquoted(text);
    inner.filter(|inner| !inner.is_empty()).unwrap_or(text)
}
