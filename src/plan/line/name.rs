//! Recognizes headings and labels as models spell them, beyond the spellings that the parser
//! accepts.
//!
//! Used by repair and by respelling. Many of these spellings are also ordinary words, so a line
//! counts only if the line below fits: a field of the action, or a fence.

use super::condition::{is_aside, is_condition, is_crossed_out, is_output};
use super::{key, value};
use crate::plan::action::{ActionRow, BodyShape, ROWS};
use crate::plan::line::field_item::has_weight;
use crate::plan::line::{self, Label, Section, heading_of, is_fence, unlisted};
use crate::text::markdown::Lines;
use crate::text::{has_phrase, has_word, link};

/// Words between an action's name and its target.
const FILLERS: &str = "file files action command resource the a an new";
/// Words in front of the number of an action.
const COUNTED: [&str; 4] = ["action", "step", "task", "part"];
/// Labels above the text to find, in upper case.
const FIND: &str = "\
    FIND, FIND THIS, SEARCH, SEARCH FOR, OLD, OLD CODE, BEFORE, ORIGINAL, REPLACE THIS, SUCHEN, \
    SUCHE, FINDEN, FINDE, RECHERCHER, CHERCHER, TROUVER, BUSCAR, ENCONTRAR, PROCURAR, CERCA, \
    TROVA, ZOEKEN, НАЙТИ, ПОИСК, 検索, 探す, 查找, 搜索, 尋找, 찾기, 검색";
/// Labels above the replacement, in upper case.
const REPLACE: &str = "\
    REPLACE, REPLACE WITH, REPLACE BY, REPLACEMENT, NEW, NEW CODE, AFTER, UPDATED, WITH THIS, \
    ERSETZEN, ERSETZEN DURCH, ERSETZE, ERSETZE DURCH, REMPLACER, REMPLACER PAR, REEMPLAZAR, \
    REEMPLAZAR POR, REEMPLAZAR CON, SUSTITUIR, SUBSTITUIR, SUBSTITUIR POR, SOSTITUIRE, \
    SOSTITUISCI, SOSTITUISCI CON, VERVANGEN, VERVANGEN DOOR, ЗАМЕНИТЬ, ЗАМЕНИТЬ НА, 置換, 置き換え, 替换, \
    替换为, 取代, 바꾸기, 교체";
const SHELLS: &str = "sh bash shell zsh console terminal";
/// Longest label, in bytes.
const MAX_LABEL: usize = 60;
/// Characters, besides emoji, that can precede a name. `!`, `//` and parentheses mean that it is
/// not a name.
const DECORATION: [char; 10] = [' ', '\t', '*', '_', '`', '[', '#', '-', ':', '.'];
/// Separators between a heading's name and the text after it.
const SEPARATORS: [char; 10] = [' ', '\t', '\u{a0}', ':', '-', '–', '—', '→', '|', '.'];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionHeading {
    pub row: &'static ActionRow,
    /// Text after the name.
    pub suffix: String,
    /// Whether the parser accepts it unchanged.
    pub exact: bool,
    /// Whether the name alone suffices: it is the format's own, in upper case or backticks.
    pub sure: bool,
}

impl ActionHeading {
    /// Returns the path or URL after the action's name.
    pub fn target(&self) -> Option<String> {
        target(&self.suffix)
    }
}

/// Parses a line as the heading of an action. `below` is the next non-blank line.
pub fn action(line: &str, next_text: &str) -> Option<ActionHeading> {
    let (level, text) = heading_of(line).filter(|(_, text)| !text.contains("<!--"))?;
    if level == 3 && line.contains("### ") && line::action(text).is_some() {
        let row = line::action(text)?;
        return Some(ActionHeading {
            row,
            suffix: String::new(),
            exact: true,
            sure: true,
        });
    }

    let text = plain(text);
    let matched = match_name(without_ordinal(&text))?;
    if is_crossed_out(line) || is_condition(matched.suffix) {
        return None;
    }

    let alone = matched.own && matched.suffix.is_empty() && level > 0;
    let sure = alone && (matched.loud || matched.row.is_message_alone());
    let heading = ActionHeading {
        row: matched.row,
        suffix: matched.suffix.to_owned(),
        exact: false,
        sure,
    };

    let fits = level != 1 && (sure || is_spoken(&matched, level) || confirms(&heading, next_text));
    fits.then_some(heading)
}

/// Returns whether a heading is that of an action in any spelling, by its name alone or by a field of
/// the action below it.
pub fn is_action(lines: &Lines<'_>, line: usize) -> bool {
    let next_text = text_below(lines, line);
    let Some(heading) = action(lines.get(line), next_text) else {
        return false;
    };
    let field = key::field(next_text, Some(heading.row));
    heading.sure || field.is_some_and(|keyed| has_weight(keyed.key) || keyed.key == "Description")
}

/// Returns whether the text above a line announces it or makes it conditional. In a message, such
/// an action can be a proposal.
pub fn is_announced(lines: &Lines<'_>, line: usize) -> bool {
    let mut above = (1..line).rev().map(|line| lines.get(line));
    let last_text = above.find(|text| !text.trim().is_empty());
    let last_text = last_text.filter(|text| heading_of(text).is_none());
    last_text.is_some_and(|text| text.trim_end().ends_with(':') || is_condition(text))
}

pub fn text_below<'a>(lines: &Lines<'a>, line: usize) -> &'a str {
    (line + 1..=lines.len())
        .map(|number| lines.get(number))
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
}

/// Parses a line as the heading of a section at any level. Also returns the level, 0 for a bold
/// line.
pub fn section(line: &str) -> Option<(Section, usize)> {
    let (level, text) = heading_of(line).filter(|_| !is_crossed_out(line))?;
    let text = plain(text);
    let name = without_ordinal(&text)
        .split('(')
        .next()
        .unwrap_or_default()
        .trim_matches(|c: char| !c.is_alphanumeric());
    let section = Section::ALL
        .into_iter()
        .find(|section| section.name().eq_ignore_ascii_case(name))
        .or_else(|| name.eq_ignore_ascii_case("memo").then_some(Section::Memos))?;

    Some((section, level))
}

/// Parses a line as a label of an EDIT. `below` is the next non-blank line, which must be a fence.
pub fn label(line: &str, next_text: &str) -> Option<Label> {
    if line.len() > MAX_LABEL || !is_fence(next_text) {
        return None;
    }
    named_label(line)
}

/// Parses a line as a label that uses the format's own name.
pub fn own_label(line: &str) -> Option<Label> {
    let own = ["find", "replace"];
    let text = line.to_lowercase();
    let may_be_label = line.len() <= MAX_LABEL && own.iter().any(|name| text.contains(name));
    may_be_label.then(|| named_label(line)).flatten()
}

fn named_label(line: &str) -> Option<Label> {
    if line.contains("~~") {
        return None;
    }

    let text = unlisted(line).trim_start_matches('#');
    let text = plain(text);
    let label = without_ordinal(&text);
    let (label, comment) = label.split_once('(').unwrap_or((label, ""));
    if is_aside(comment) || changes_the_search(comment) {
        return None;
    }

    let label = label
        .trim_end_matches(|c: char| !c.is_alphabetic())
        .to_uppercase();
    let label = label.trim();
    if has_phrase(FIND, label) {
        return Some(Label::Find);
    }

    has_phrase(REPLACE, label).then_some(Label::Replace)
}

/// Returns whether the text after a label asks for another kind of search than the format's.
fn changes_the_search(text: &str) -> bool {
    const KINDS: &str = "all every each any regex pattern global case occurrence times";

    let text = text.to_lowercase();
    let mut tokens = text.split(|c: char| !c.is_alphanumeric());
    tokens.any(|word| has_word(KINDS, word.trim_end_matches('s')) || has_word(KINDS, word))
}

/// Returns whether a line is entirely bold and starts with the name of an action.
pub fn is_bold_action(line: &str) -> bool {
    let bold = heading_of(line).filter(|(level, _)| *level == 0);
    bold.is_some_and(|(_, text)| match_name(without_ordinal(&plain(text))).is_some())
}

/// An action's name at the start of a heading.
struct MatchedName<'a> {
    row: &'static ActionRow,
    /// Whether it is the format's own name.
    own: bool,
    /// Whether it is in upper case or backticks.
    loud: bool,
    /// Text after the name.
    suffix: &'a str,
}

fn match_name(text: &str) -> Option<MatchedName<'_>> {
    let own = ROWS.iter().flat_map(|row| {
        let names = std::iter::once(&row.name).chain(row.aliases);
        names.map(|name| (*row, *name, true))
    });
    let other = ROWS.iter().flat_map(|row| {
        let names = row.other_names.iter();
        names.map(|name| (*row, *name, false))
    });

    let names = own.chain(other);
    let fits = names.filter_map(|(row, name, own)| Some((row, own, strip_name(text, name)?)));
    let (row, own, suffix) = fits.min_by_key(|(_, _, suffix)| suffix.len())?;
    let name = &text[..text.len() - suffix.len()];
    let quoted = suffix.starts_with('`');
    Some(MatchedName {
        row,
        own,
        loud: quoted || !name.chars().any(char::is_lowercase),
        suffix: suffix
            .trim_start_matches(['`', '*', '_', ']', ')'])
            .trim_start_matches(SEPARATORS)
            .trim_end_matches(['*', '_', ' ', ':']),
    })
}

/// Returns the text after an action's name, ignoring case and how the name's words are joined.
fn strip_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut tail = text;
    for expected in name.chars() {
        if expected == '_' {
            tail = tail.trim_start_matches(['_', '-', ' ']);
            continue;
        }

        let next = tail.chars().next()?;
        if !next.eq_ignore_ascii_case(&expected) {
            return None;
        }
        tail = &tail[next.len_utf8()..];
    }

    let ends = !tail.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ends.then_some(tail)
}

/// Returns whether a heading alone starts a message to the user.
fn is_spoken(matched: &MatchedName<'_>, level: usize) -> bool {
    let alone = matched.suffix.is_empty() && (matched.own || matched.loud);
    matched.row.is_message_alone()
        && (2..=4).contains(&level)
        && (alone || (matched.own && matched.loud))
}

fn confirms(heading: &ActionHeading, next_text: &str) -> bool {
    let field = key::field(next_text, Some(heading.row)).is_some();
    let target = heading.target().is_some();
    let fits = match heading.row.shape {
        BodyShape::ListAlone => target,
        BodyShape::File => target && is_fence(next_text),
        BodyShape::Pairs => target && (is_fence(next_text) || line::label(next_text).is_some()),
        BodyShape::Queries => is_fence(next_text) && !is_output(&heading.suffix),
        BodyShape::Script => is_command(&heading.suffix, next_text),
        BodyShape::Message => false,
    };

    field || fits
}

/// Returns whether the block below a heading is a command, judging by its fence: its language is a
/// shell's or missing. If the heading says that it shows output, it is not a command.
fn is_command(text: &str, next_text: &str) -> bool {
    let language = next_text.trim().trim_start_matches(['`', '~']).trim();
    let shell = language
        .split_whitespace()
        .next()
        .is_none_or(|word| has_word(SHELLS, &word.to_lowercase()));
    is_fence(next_text) && shell && !is_output(text)
}

/// Returns the path or URL that some words name, ignoring words such as `file`.
pub fn target(text: &str) -> Option<String> {
    let mut tail = text.trim();
    while let Some((word, after)) = tail.split_once(' ') {
        let word = word.trim_end_matches(SEPARATORS).to_lowercase();
        if !has_word(FILLERS, &word) {
            break;
        }
        tail = after.trim_start_matches(SEPARATORS);
    }

    let inner = tail
        .strip_prefix('(')
        .and_then(|tail| tail.strip_suffix(')'))
        .unwrap_or(tail);
    let name = value::path(inner).or_else(|| link::read(inner).ok())?;
    let is_marked = inner.starts_with(['`', '[', '<']);

    (is_marked || name.contains('/') || name.contains('.')).then_some(name)
}

/// Returns text without decoration: backslash escapes, and emoji and marks at the start.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let escapes = letter == '\\' && letters.peek().is_some_and(char::is_ascii_punctuation);
        if !escapes {
            out.push(letter);
        }
    }

    out.trim_start_matches(|c: char| {
        !c.is_alphanumeric() && (!c.is_ascii() || DECORATION.contains(&c))
    })
    .trim_end()
    .to_owned()
}

/// Removes the number of an action: `1.`, `2)`, `Step 3 -`, `Action:`.
fn without_ordinal(text: &str) -> &str {
    let counted = COUNTED.iter().find_map(|word| {
        let head = text.get(..word.len())?;
        let tail = &text[word.len()..];
        (head.eq_ignore_ascii_case(word) && !tail.starts_with(char::is_alphanumeric))
            .then_some(tail)
    });
    let after = counted.unwrap_or(text).trim_start_matches(['#', ' ', '\t']);
    let digits = |c: char| c.is_ascii_digit() || matches!(c, '.' | '/');
    let tail = if after.starts_with(|c: char| c.is_ascii_digit()) {
        after.trim_start_matches(digits)
    } else {
        after
    };

    let numbered = tail.len() < after.len();
    // `Action Plan` and `Task list` have no number and no colon.
    let is_label = counted.is_some() && after.starts_with([':', '-', '–', '—']);
    if numbered || is_label {
        tail.trim_start_matches(|c: char| !c.is_alphanumeric())
    } else {
        text
    }
}
