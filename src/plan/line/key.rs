//! Parses fields as models spell them: without a bullet, numbered, with other keys.

use super::condition::{is_crossed_out, is_struck_out};
use crate::plan::action::{ActionRow, BodyShape, OtherKeys};
use crate::plan::field::Field;
use crate::plan::line::field_item::{HEADER, canonical, has_weight, letters};
use crate::plan::line::unlisted;
use crate::text::has_word;

/// Key of a field with a command. Not in the format; its value becomes the block.
pub const COMMAND: &str = "Command";

/// Key of a field with a query. Not in the format; its value becomes a block.
pub const QUERY: &str = "Query";

pub const PATH_KEYS: OtherKeys = (
    "File Path",
    "\
        path file filename target targetfile targetpath location resource relativepath fullpath",
);

pub const RESOURCE_KEYS: OtherKeys = (
    "Resource",
    "path file filename target url link page source targetfile",
);

/// Other keys for the resources passed along with a message.
pub const HANDOFF_KEYS: OtherKeys = ("Handoff Resources", "resources handofffiles handoff files");

/// Longest key, in bytes.
const MAX_KEY: usize = 40;

/// Longest value that is searched for a further field, in bytes.
pub const MAX_VALUE: usize = 4096;

const MARKS: [char; 3] = ['*', '_', '`'];

/// What separates a marked key from its value.
const SEPARATORS: [char; 7] = [':', '：', '=', '-', '–', '—', '→'];

/// A line parsed as a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyedLine<'a> {
    /// The key as the format spells it.
    pub key: &'static str,
    /// The text after the key.
    pub value: &'a str,
}

/// Parses a line as a field of an action, or of the header if `row` is `None`.
pub fn field<'a>(line: &'a str, row: Option<&'static ActionRow>) -> Option<KeyedLine<'a>> {
    let (key, value) = split(line)?;
    let key = resolve(key, row)?;
    // An unticked box means `false`.
    let unticked =
        unlisted(line).starts_with("[ ]") && matches!(key, "Overwrite" | "Allow Failure");
    if unticked {
        return None;
    }

    Some(KeyedLine { key, value })
}

/// Parses a line without a bullet as a field, although Markdown reads it as part of the item above:
/// it has marks, or it changes what the action does.
pub fn unlisted_field<'a>(line: &'a str, row: &'static ActionRow) -> Option<KeyedLine<'a>> {
    if unlisted(line) != line {
        return None;
    }
    let keyed = field(line, Some(row))?;
    let own =
        line.starts_with(MARKS) || (has_weight(keyed.key) && line.starts_with(char::is_alphabetic));
    own.then_some(keyed)
}

/// Returns whether a line is a field that changes what an action does, and could be incomplete.
pub fn is_open_setting(line: &str, row: &'static ActionRow) -> bool {
    let keyed = field(line, Some(row)).filter(|keyed| has_weight(keyed.key));
    keyed.is_some_and(|keyed| !keyed.value.ends_with([')', '`', '"', '>']))
}

/// Returns whether the parser misreads a field: a setting of a command under another key, a path in
/// quotes, a value that contains a further field.
pub fn is_misread(field: &Field, row: &'static ActionRow) -> bool {
    let texts = std::iter::once(&field.value).chain(&field.items);
    if texts.into_iter().any(|text| holds_field(text, row)) {
        return true;
    }

    let other = canonical(&field.key).is_none() && row.shape == BodyShape::Script;
    let is_weighted = resolve(&field.key, Some(row)).is_some_and(has_weight);
    let path = matches!(field.key.as_str(), "File Path" | "Resource");
    (other && is_weighted) || (path && field.value.starts_with(['"', '\'', '“']))
}

/// Returns whether a field that changes what its action does follows within a value.
fn holds_field(value: &str, row: &'static ActionRow) -> bool {
    // A longer value is not searched: a field could start at any word in it.
    value.len() <= MAX_VALUE
        && value
            .match_indices(' ')
            .filter_map(|(at, _)| unlisted_field(&value[at + 1..], row))
            .any(|keyed| has_weight(keyed.key))
}

/// Returns a line's key and value, ignoring anything before the key.
pub fn split(line: &str) -> Option<(&str, &str)> {
    let text = unlisted(line);
    let text = ["[x]", "[X]", "[ ]"]
        .iter()
        .find_map(|mark| text.strip_prefix(mark))
        .unwrap_or(text);

    // Emoji and other bullets. `//` and `!` in front of a field mean that it does not count.
    let text =
        text.trim_start_matches(|c: char| c == ' ' || (!c.is_ascii() && !c.is_alphanumeric()));
    let text = unnumbered(text);
    let inner = text.trim_start_matches(MARKS);
    let (key, value) = if inner.len() < text.len() {
        let mark = text[..text.len() - inner.len()].chars().next_back()?;
        let (key, tail) = inner.split_at(inner.find(mark)?);
        let tail = tail.trim_start_matches(MARKS);
        match key.trim_end().strip_suffix([':', '：']) {
            Some(key) => (key, tail),
            None => (key, tail.trim_start().strip_prefix(SEPARATORS)?),
        }
    } else {
        inner.split_once([':', '：'])?
    };

    let before = &line[..line.len() - value.len()];
    let (key, value) = (key.trim(), value.trim_matches([' ', '\t', '\u{a0}']));
    let fits = !key.is_empty() && key.len() <= MAX_KEY && !value.starts_with("//");
    (fits && !is_crossed_out(before) && !is_struck_out(value)).then_some((key, value))
}

/// Returns the format's key for another key of an action, or of the header if `row` is `None`.
pub fn resolve(key: &str, row: Option<&'static ActionRow>) -> Option<&'static str> {
    let own = canonical(key);
    let Some(row) = row else {
        return own.filter(|key| HEADER.contains(key));
    };
    if let Some(key) = own.filter(|key| row.keys.contains(key)) {
        return Some(key);
    }

    let plain = letters(key);
    let translated = TRANSLATED_KEYS
        .iter()
        .filter(|(key, _)| row.keys.contains(key));
    let mut others = row.other_keys.iter().chain(translated);
    others
        .find(|(_, keys)| has_word(keys, &plain))
        .map(|(key, _)| *key)
}

fn unnumbered(text: &str) -> &str {
    let tail = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let after = tail.strip_prefix(". ").or_else(|| tail.strip_prefix(") "));
    after
        .filter(|_| tail.len() < text.len())
        .map_or(text, str::trim_start)
}

/// What models write instead of a key, in small letters and without spaces and marks.
const TRANSLATED_KEYS: [OtherKeys; 5] = [
    (
        "File Path",
        "\
            dateipfad datei pfad chemindufichier cheminfichier chemin fichier rutadelarchivo \
            rutadearchivo ruta archivo caminhodoarquivo caminho arquivo percorsodelfile \
            percorsofile percorso bestandspad путькфайлу путь файл ファイルパス ファイル パス 文件路径 文件 路径 檔案路徑 \
            檔案 路徑 파일경로 파일 경로",
    ),
    (
        "Resource",
        "\
            ressource datei dateipfad fichier recurso archivo arquivo risorsa ресурс файл リソース \
            ファイル 资源 文件 資源 리소스 파일",
    ),
    (
        "Description",
        "\
            beschreibung descripción descrição descrizione beschrijving описание 説明 描述 说明 說明 설명 \
            purpose reason why rationale summary title goal intent explanation",
    ),
    (
        "Expected Outcome",
        "\
            erwartetesergebnis ergebnis résultatattendu resultadoesperado risultatoatteso \
            verwachtresultaat ожидаемыйрезультат 期待される結果 期待結果 预期结果 預期結果 예상결과",
    ),
    ("Timeout", "zeitlimit タイムアウト 超时 타임아웃"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the parsed field of a line in an EXECUTE.
    fn check(line: &str, expected: Option<(&str, &str)>) {
        let actual = field(line, Some(&crate::plan::action::execute::ROW))
            .map(|keyed| (keyed.key, keyed.value));
        assert_eq!(actual, expected, "{line:?}");
    }

    #[test]
    fn p31_a_field_is_known_without_its_bullet_and_by_other_names() {
        for line in [
            "- **cwd:** src",
            "**cwd:** src",
            "cwd: src",
            "1. **CWD**: src",
            "* `cwd`: src",
            "- [ ] *cwd:* src",
            "📁 **Working Directory** – src",
            "**Working Directory** - src  ",
        ] {
            check(line, Some(("cwd", "src")));
        }
        check("- **Command:** `ls`", Some((COMMAND, "`ls`")));
    }

    #[test]
    fn words_are_no_field() {
        for line in [
            "",
            "Then we run it.",
            "Note: it is late",
            "https://example.com",
            "- **File Path:** x",
            "Working Directory - src",
            "**bold**",
        ] {
            check(line, None);
        }
    }
}
