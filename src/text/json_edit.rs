//! Edits lists in a JSON text, and keeps every other byte: appends an element or removes one.
//!
//! Removing the last element also removes a list and objects that became empty, so it undoes an
//! addition that created them. Lists and objects that were empty before the addition are recognized
//! by a single space in front of their element, and stay. So does a text without any value, by a
//! tab.

use std::ops::Range;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
struct JsonNode {
    span: Range<usize>,
    children: JsonChildren,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum JsonChildren {
    /// Members: key, offset of the key, value.
    Object(Vec<(String, usize, JsonNode)>),
    Array(Vec<JsonNode>),
    None,
}

/// In front of the only element of an object or list that was empty before.
const WAS_EMPTY: &str = " ";
/// In front of the only member of a text that had no value before.
const WAS_NOTHING: &str = "\t";

/// Returns a new text with a list that has this value, at a path of keys.
pub fn created(path: &[&str], value: &Value) -> String {
    format!("{:#}\n", nested(path, value))
}

/// Returns `true` if a text has nothing but what [`created`] wrote, apart from one value.
pub fn is_created(text: &str, without_ours: &str) -> bool {
    without_ours.trim_end() == "{}" && text.starts_with("{\n")
}

fn nested(path: &[&str], value: &Value) -> Value {
    let list = Value::Array(vec![value.clone()]);
    path.iter()
        .rev()
        .fold(list, |inner, key| serde_json::json!({ *key: inner }))
}

/// Appends a value to the list at a path of keys. Creates missing parts of the path. `None` if the
/// text is not JSON, or the path does not lead to a list.
pub fn push(text: &str, path: &[&str], value: &Value) -> Option<String> {
    if text.trim().is_empty() {
        let (first, below) = path.split_first()?;
        let key = Value::from(*first);
        let new = JsonLayout::of(text).pretty(&nested(below, value), "");
        return Some(format!("{text}{{{WAS_NOTHING}{key}: {new}}}"));
    }
    let mut node = parse(text)?;
    for (at, key) in path.iter().enumerate() {
        let JsonChildren::Object(members) = &node.children else {
            return None;
        };
        // Of duplicate keys the last one counts, as in serde_json.
        let Some((_, _, child)) = members.iter().rev().find(|(name, ..)| name == key) else {
            let new = nested(&path[at + 1..], value);
            return Some(insert(text, &node, Some(key), &new));
        };
        node = child.clone();
    }

    match node.children {
        JsonChildren::Array(_) => Some(insert(text, &node, None, value)),
        _ => None,
    }
}

/// Removes an element of the list at a path of keys, and parents that become empty. `None` if it
/// does not exist.
pub fn remove(text: &str, path: &[&str], index: usize) -> Option<String> {
    let mut nodes = vec![parse(text)?];
    let mut positions = Vec::new();
    for key in path {
        let JsonChildren::Object(members) = &nodes.last()?.children else {
            return None;
        };
        let position = members.iter().rposition(|(name, ..)| name == key)?;
        let node = members[position].2.clone();
        positions.push(position);
        nodes.push(node);
    }

    if !matches!(nodes.last()?.children, JsonChildren::Array(_)) {
        return None;
    }
    positions.push(index);
    while let (Some(node), Some(position)) = (nodes.pop(), positions.pop()) {
        let spans = node.spans();
        if position >= spans.len() {
            return None;
        }
        if spans.len() > 1 {
            return Some(remove_span(text, &spans, position));
        }
        let inside = node.span.start + 1..node.span.end - 1;
        let front = &text[inside.start..spans[position].start];
        if front == WAS_EMPTY {
            let tail = &text[spans[position].end..];
            return Some(format!("{}{tail}", &text[..inside.start]));
        }
        if nodes.is_empty() && front == WAS_NOTHING {
            return Some(text[..node.span.start].to_owned());
        }
        if nodes.is_empty() {
            return Some(format!("{}{}", &text[..inside.start], &text[inside.end..]));
        }
    }

    None
}

fn remove_span(text: &str, spans: &[Range<usize>], position: usize) -> String {
    let cut = match position {
        0 => spans[0].start..spans[1].start,
        _ => spans[position - 1].end..spans[position].end,
    };
    format!("{}{}", &text[..cut.start], &text[cut.end..])
}

fn insert(text: &str, node: &JsonNode, key: Option<&str>, value: &Value) -> String {
    let layout = JsonLayout::of(text);
    let source = &text[node.span.clone()];
    let spans = node.spans();
    let member = |rendered: String| match key {
        Some(key) => format!("{}: {rendered}", Value::from(key)),
        None => rendered,
    };

    if let Some(last) = spans.last() {
        let (before, after) = text.split_at(last.end);
        if !source.contains('\n') {
            return format!("{before}, {}{after}", member(value.to_string()));
        }
        let inner = indent_at(text, spans[0].start);
        let rendered = member(layout.pretty(value, inner));
        return format!("{before},{}{inner}{rendered}{after}", layout.line_end);
    }

    let rendered = member(layout.pretty(value, indent_at(text, node.span.start)));
    let (before, after) = text.split_at(node.span.start + 1);
    format!("{before}{WAS_EMPTY}{rendered}{after}")
}

struct JsonLayout<'t> {
    unit: &'t str,
    line_end: &'static str,
}

impl JsonLayout<'_> {
    fn of(text: &str) -> JsonLayout<'_> {
        let indents = text.lines().map(indent);
        let unit = indents.into_iter().find(|indent| !indent.is_empty());
        JsonLayout {
            unit: unit.unwrap_or("  "),
            line_end: if text.contains("\r\n") { "\r\n" } else { "\n" },
        }
    }

    /// Renders a value. Lines after the first begin with `outer`.
    fn pretty(&self, value: &Value, outer: &str) -> String {
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        serde::Serialize::serialize(value, &mut serializer)
            .expect("a value is always JSON, and memory can be written");
        let text = String::from_utf8(bytes).expect("JSON is UTF-8");
        text.replace('\n', &format!("{}{outer}", self.line_end))
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn indent_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    indent(&text[start..at])
}

impl JsonNode {
    fn spans(&self) -> Vec<Range<usize>> {
        match &self.children {
            JsonChildren::Object(members) => members
                .iter()
                .map(|(_, start, node)| *start..node.span.end)
                .collect(),
            JsonChildren::Array(nodes) => nodes.iter().map(|node| node.span.clone()).collect(),
            JsonChildren::None => Vec::new(),
        }
    }
}

fn parse(text: &str) -> Option<JsonNode> {
    let plain = without_comments(text);
    // Validates syntax and depth; the scanner only finds positions.
    serde_json::from_str::<Value>(&plain).ok()?;
    let mut scanner = JsonScanner {
        text: &plain,
        at: 0,
    };
    scanner.value()
}

/// Returns a JSON text with spaces in place of comments and of commas behind a last element, which
/// agents accept in their settings. Every other byte keeps its position.
pub fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let (mut at, mut comma) = (0, None);
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'"', ..] => end_of_string(&bytes, at),
            [b'/', b'/', ..] => blank(&mut bytes, at, b"\n"),
            [b'/', b'*', ..] => blank(&mut bytes, at, b"*/"),
            [b'}' | b']', ..] => {
                if let Some(comma) = comma {
                    bytes[comma] = b' ';
                }
                at + 1
            }
            _ => at + 1,
        };
        match bytes[at] {
            b',' => comma = Some(at),
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at = end;
    }
    String::from_utf8(bytes).expect("whole characters became spaces")
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Replaces a comment by spaces and returns its end. Line ends stay.
fn blank(bytes: &mut [u8], start: usize, end: &[u8]) -> usize {
    let inside = bytes.get(start + 2..).unwrap_or_default();
    let found = inside.windows(end.len()).position(|window| window == end);
    let stop = match found {
        Some(at) => start + 2 + at + end.len(),
        None if end == b"\n" => bytes.len(),
        // An open comment is an error, which the parser reports.
        None => return start + 2,
    };
    for byte in &mut bytes[start..stop] {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    stop
}

// Expects valid JSON.
struct JsonScanner<'t> {
    text: &'t str,
    at: usize,
}

impl JsonScanner<'_> {
    /// Skips whitespace and returns the next byte.
    fn peek(&mut self) -> Option<u8> {
        let tail = &self.text.as_bytes()[self.at..];
        self.at += tail
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips a separator. Returns `true` at the end of the list.
    fn is_end(&mut self, close: u8) -> Option<bool> {
        let byte = self.peek()?;
        if byte == close || byte == b',' {
            self.at += 1;
        }
        Some(byte == close)
    }

    fn value(&mut self) -> Option<JsonNode> {
        let first = self.peek()?;
        let start = self.at;
        let children = match first {
            b'{' => JsonChildren::Object(self.members()?),
            b'[' => JsonChildren::Array(self.elements()?),
            b'"' => {
                self.string()?;
                JsonChildren::None
            }
            _ => {
                let tail = &self.text.as_bytes()[self.at..];
                let is_part =
                    |byte: &&u8| !matches!(byte, b',' | b']' | b'}') && !byte.is_ascii_whitespace();
                self.at += tail.iter().take_while(is_part).count();
                JsonChildren::None
            }
        };

        Some(JsonNode {
            span: start..self.at,
            children,
        })
    }

    fn members(&mut self) -> Option<Vec<(String, usize, JsonNode)>> {
        self.at += 1;
        let mut members = Vec::new();
        while !self.is_end(b'}')? {
            self.peek()?;
            let start = self.at;
            let key = self.string()?;
            self.peek()?;
            self.at += 1;
            members.push((key, start, self.value()?));
        }
        Some(members)
    }

    fn elements(&mut self) -> Option<Vec<JsonNode>> {
        self.at += 1;
        let mut elements = Vec::new();
        while !self.is_end(b']')? {
            elements.push(self.value()?);
        }
        Some(elements)
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.at = end_of_string(self.text.as_bytes(), start);
        serde_json::from_str(&self.text[start..self.at]).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Checks the result of an addition, and that its removal restores the text.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let pushed = push(text, &["hooks", "Stop"], &json!({"a": [1]})).unwrap();
        assert_eq!(pushed, expected);
        let value: Value = serde_json::from_str(&pushed).unwrap();
        let index = value["hooks"]["Stop"].as_array().unwrap().len() - 1;
        assert_eq!(remove(&pushed, &["hooks", "Stop"], index).unwrap(), text);
    }

    #[test]
    fn a_value_is_added_as_the_text_is_laid_out() {
        let entry = "{\n        \"a\": [\n          1\n        ]\n      }";
        let stop = format!("\"hooks\": {{\n    \"Stop\": [\n      {entry}\n    ]\n  }}");
        let created = created(&["hooks", "Stop"], &json!({"a": [1]}));
        assert_eq!(created, format!("{{\n  {stop}\n}}\n"));
        let without = remove(&created, &["hooks", "Stop"], 0).unwrap();
        assert!(is_created(&created, &without) && !is_created("{ }", "{}"));
        check(
            "{}",
            "{ \"hooks\": {\n  \"Stop\": [\n    {\n      \"a\": [\n        1\n      ]\n    }\n  ]\n}}",
        );
        check(
            "{\n  \"z\": 1,\n  \"b\": {}\n}\n",
            &format!("{{\n  \"z\": 1,\n  \"b\": {{}},\n  {stop}\n}}\n"),
        );
        check(
            "{\"z\":1}",
            "{\"z\":1, \"hooks\": {\"Stop\":[{\"a\":[1]}]}}",
        );
        check(
            "{\"hooks\": {\"Stop\": [\"\\\"]\"]}}",
            "{\"hooks\": {\"Stop\": [\"\\\"]\", {\"a\":[1]}]}}",
        );
        check(
            "{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{}\r\n\t\t]\r\n\t}\r\n}",
            "{\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\t\t\t{},\r\n\t\t\t{\r\n\t\t\t\t\"a\": [\r\n\t\t\t\t\t1\r\n\t\t\t\t]\r\n\t\t\t}\r\n\t\t]\r\n\t}\r\n}",
        );
    }

    #[test]
    fn what_cannot_be_changed_is_left_alone() {
        let add = |text: &str| push(text, &["hooks", "Stop"], &json!(1));
        for text in [
            "{",
            "[]",
            "// a",
            "{} /* a",
            "{\"hooks\": 1}",
            "{\"hooks\": {\"Stop\": {}}}",
        ] {
            assert_eq!(add(text), None, "{text}");
        }
        assert_eq!(remove("{\"a\": [1]}", &["a"], 1), None);
        assert_eq!(remove("{\"a\": {}}", &["a"], 0), None);
        assert_eq!(remove("{\"a\": [1]}", &["a"], 0).unwrap(), "{}");
    }

    #[test]
    fn comments_are_blanked_and_strings_are_not() {
        let check = |text: &str, expected: &str| assert_eq!(without_comments(text), expected);
        check("{} // é\r\n", "{}      \r\n");
        check("{\"a\": \"//\\\"/*\"}", "{\"a\": \"//\\\"/*\"}");
        check("[1, /* 2,\n */]", "[1       \n   ]");
        check("[1, 2]", "[1, 2]");
        check("\"a", "\"a");
        check("/*", "/*");
        check("/", "/");
    }

    #[test]
    fn what_was_empty_before_is_empty_again() {
        let value = json!({"x": 1});
        for text in [
            "",
            "\n",
            " \r\n",
            "{}",
            "{}\n",
            "{ }",
            "{\n}",
            "{\r\n\r\n}\r\n",
            "{\"hooks\": {}}",
            "{\"hooks\":{ \n }, \"a\": 1}",
            "{\n  \"hooks\": {\n  }\n}",
            "{\"hooks\":{\"Stop\":[]}}",
            "{\r\n\t\"hooks\": {\"Stop\": [\r\n\t]}}",
            "{\"hooks\": {\"Stop\": [], \"Start\": []}}",
        ] {
            let one = push(text, &["hooks", "Start"], &value).unwrap();
            let two = push(&one, &["hooks", "Stop"], &value).unwrap();
            serde_json::from_str::<Value>(&two).unwrap();
            for order in [["Start", "Stop"], ["Stop", "Start"]] {
                let remaining = remove(&two, &["hooks", order[0]], 0).unwrap();
                let remaining = remove(&remaining, &["hooks", order[1]], 0).unwrap();
                assert_eq!(remaining, text, "{two}");
            }
        }
    }

    /// Returns any JSON without empty objects and lists on the path.
    fn documents() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        let inner = leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z\\\\\"é]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        let member = prop::collection::btree_map("[a-z]{1,3}", inner.clone(), 1..4);
        (member, prop::collection::vec(inner, 1..3), 0..3).prop_map(|(members, list, variant)| {
            let mut value = Value::Object(members.into_iter().collect());
            match variant {
                0 => {}
                1 => value["hooks"] = json!({ "Other": list }),
                _ => value["hooks"] = json!({ "Stop": list }),
            }
            value
        })
    }

    proptest! {
        #[test]
        fn what_is_added_is_there_and_goes_again(value in documents(), is_pretty: bool) {
            let text = if is_pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
            let path = ["hooks", "Stop"];
            let pushed = push(&text, &path, &json!({"x": 1})).unwrap();
            let read: Value = serde_json::from_str(&pushed).unwrap();
            let list = read["hooks"]["Stop"].as_array().unwrap();
            prop_assert_eq!(list.last().unwrap(), &json!({"x": 1}));
            prop_assert_eq!(remove(&pushed, &path, list.len() - 1).unwrap(), text);
        }
    }
}
