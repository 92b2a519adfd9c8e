//! Rewrites serde's error messages in terms of YAML instead of Rust.

/// Rewrites a message. Returns unknown messages unchanged.
pub(super) fn plain_message(message: &str) -> String {
    reword(message).unwrap_or_else(|| message.to_owned())
}

/// `None` if the message has an unknown form.
fn reword(message: &str) -> Option<String> {
    if let Some(details) = message.strip_prefix("unknown variant ") {
        let (actual, expected) = details.split_once(", expected ")?;
        return Some(format!("must be {expected}, not {actual}"));
    }

    let details = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|form| message.strip_prefix(form))?;
    let (actual, expected) = details.rsplit_once(", expected ")?;
    Some(format!(
        "must be {}, not {}",
        describe_type(expected),
        describe_value(actual)
    ))
}

/// Describes the expected type.
fn describe_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "`true` or `false`",
        "a sequence" => "a list",
        "a map" => "a mapping",
        _ if expected.starts_with("struct ") => "a mapping",
        other => other,
    }
}

/// Describes the value found.
fn describe_value(actual: &str) -> String {
    if let Some(text) = actual.strip_prefix("string ") {
        return format!("`{}`", text.trim_matches('"'));
    }

    let forms = ["integer ", "floating point ", "boolean "];
    let literal = forms.iter().find_map(|form| actual.strip_prefix(form));
    match (literal, actual) {
        (Some(shown), _) => shown.to_owned(),
        (None, "sequence") => "a list".to_owned(),
        (None, "map") => "a mapping".to_owned(),
        (None, "unit value" | "null") => "empty".to_owned(),
        (None, other) => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: &str) {
        assert_eq!(plain_message(message), expected);
    }

    #[test]
    fn messages_have_no_names_of_types() {
        check(
            "invalid type: string \"many\", expected u32",
            "must be a whole number that is not negative, not `many`",
        );
        check(
            "invalid value: integer `-1`, expected u32",
            "must be a whole number that is not negative, not `-1`",
        );
        check(
            "invalid type: string \"maybe\", expected a boolean",
            "must be `true` or `false`, not `maybe`",
        );
        check(
            "invalid type: integer `3`, expected struct Execute",
            "must be a mapping, not `3`",
        );
        check(
            "invalid type: map, expected a sequence",
            "must be a list, not a mapping",
        );
        check(
            "invalid type: unit value, expected a string",
            "must be a string, not empty",
        );
        check(
            "unknown variant `foo`, expected `a` or `b`",
            "must be `a` or `b`, not `foo`",
        );
        check(
            "unknown variant `x`, expected one of `a`, `b`, `c`",
            "must be one of `a`, `b`, `c`, not `x`",
        );
    }

    #[test]
    fn other_messages_stay() {
        check("missing field `kind`", "missing field `kind`");
        check("`a` is not a valid size", "`a` is not a valid size");
    }
}
