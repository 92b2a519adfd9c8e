//! Settings of one call of git (`git -c`), which gix does not read: git passes them on in a variable.

use std::os::unix::ffi::OsStrExt as _;

use gix::bstr::{BString, ByteSlice as _};

use crate::host::env;

const PARAMETERS: &str = "GIT_CONFIG_PARAMETERS";

/// Returns the settings as `<key>=<value>`, or `<key>` without a value. None if git would not
/// understand the variable.
pub(super) fn call_settings() -> Vec<BString> {
    let parameters = env::var_os(PARAMETERS).unwrap_or_default();
    parse(parameters.as_bytes()).unwrap_or_default()
}

fn parse(text: &[u8]) -> Option<Vec<BString>> {
    let mut settings = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (mut setting, after_word) = unquote(rest)?;
        let after_key = after_word.strip_prefix(b"=");
        // gix takes the first `=` for the end of the key. Before 2.31, git quoted key and value as
        // one.
        let is_readable = after_key.is_none() || !setting.contains(&b'=');
        let after = match after_key {
            Some(quoted) if quoted.starts_with(b"'") => {
                let (value, after) = unquote(quoted)?;
                setting.push(b'=');
                setting.extend(value);
                after
            }
            after_key => after_key.unwrap_or(after_word),
        };
        if is_readable {
            settings.push(setting.into());
        }
        rest = after.trim_start();
        if rest.len() == after.len() && !rest.is_empty() {
            return None;
        }
    }
    Some(settings)
}

/// Reads a word in single quotes. A quote or `!` in it is outside of them, behind a backslash.
/// Returns the rest.
fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = text.strip_prefix(b"'")?;
    loop {
        let end = rest.find_byte(b'\'')?;
        word.extend(&rest[..end]);
        rest = &rest[end + 1..];
        match rest {
            [b'\\', escaped, b'\'', after @ ..] => {
                word.push(*escaped);
                rest = after;
            }
            _ => return Some((word, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&[&str]>) {
        let settings = parse(text.as_bytes());
        let expected = expected.map(|all| all.iter().map(|&one| one.into()).collect());
        assert_eq!(settings, expected, "{text}");
    }

    #[test]
    fn settings_are_read_as_git_writes_them() {
        check("", Some(&[]));
        check(
            "'user.name'='Ada L.' 'core.bare'=  'a.b'=''",
            Some(&["user.name=Ada L.", "core.bare", "a.b="]),
        );
        check(
            r"'alias.x'=''\'''\!''\''it'\''s=1'",
            Some(&["alias.x='!'it's=1"]),
        );
        check(
            "'user.name=Ada' 'core.bare'",
            Some(&["user.name=Ada", "core.bare"]),
        );
        check(
            "'url.https://h/?a=b.insteadof'='x' 'a.b'='1'",
            Some(&["a.b=1"]),
        );
    }

    #[test]
    fn what_git_refuses_is_no_setting() {
        for text in ["x", "'a.b", "'a.b'='1", "'a.b'x", "'a.b''c.d'"] {
            check(text, None);
        }
    }
}
