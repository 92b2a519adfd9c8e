//! What git refuses in the content of `.gitattributes` and `.gitmodules`.
//!
//! `git fsck --strict`, a server that checks pushes, and every import of a session refuse a tree with
//! such a file. The rules are those of git's `fsck.c` and `submodule-config.c`. git ignores a
//! `.gitmodules` from its first syntax error on, and so does this module.

use super::path::{GitFile, git_file};
use super::percent_decoded;
use super::sanitize::sanitize_line;

/// git ignores attributes in lines of this length or longer.
const MAX_LINE: usize = 2048;
const HOST: &[u8] = b".-_[:]";

/// Returns the reason why git refuses a file of this name with this content; `None` if it does not.
pub fn refused(name: &str, contents: &[u8]) -> Option<String> {
    match git_file(name)? {
        GitFile::Attributes => long_line(contents)
            .map(|line| format!("line {line} has {MAX_LINE} bytes or more, which git refuses")),
        GitFile::Modules => settings(contents).iter().find_map(refused_setting),
    }
}

/// Returns the number of the first line that is too long. git reads up to the first NUL.
fn long_line(contents: &[u8]) -> Option<usize> {
    let text = contents.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut lines = text.split(|&byte| byte == b'\n');
    lines
        .position(|line| line.len() >= MAX_LINE)
        .map(|at| at + 1)
}

/// A setting with its full name: `submodule.lib.url`.
struct Setting {
    name: Vec<u8>,
    /// `None` for a name without `=`.
    value: Option<Vec<u8>>,
}

fn refused_setting(setting: &Setting) -> Option<String> {
    let remaining = setting.name.strip_prefix(b"submodule.")?;
    let dot = remaining.iter().rposition(|&byte| byte == b'.')?;
    let (submodule, key) = (&remaining[..dot], &remaining[dot + 1..]);
    let display = |bytes: &[u8]| sanitize_line(&String::from_utf8_lossy(bytes)).into_owned();
    if submodule.is_empty() || climbs(submodule) {
        let submodule = display(submodule);
        return Some(format!("git refuses the submodule name `{submodule}`"));
    }

    let value = setting.value.as_deref()?;
    let (setting_name, is_refused) = match key {
        b"url" => ("URL", is_refused_url(value)),
        b"path" => ("path", value.starts_with(b"-")),
        b"update" => ("update command", value.starts_with(b"!")),
        _ => return None,
    };
    is_refused.then(|| {
        let (submodule, value) = (display(submodule), display(value));
        format!("git refuses the {setting_name} `{value}` of submodule `{submodule}`")
    })
}

fn climbs(name: &[u8]) -> bool {
    let mut parts = name.split(|byte| matches!(byte, b'/' | b'\\'));
    parts.any(|part| part == b"..")
}

fn is_refused_url(url: &[u8]) -> bool {
    if url.starts_with(b"-") {
        return true;
    }
    let is_relative = ["./", ".\\", "../", "..\\"]
        .iter()
        .any(|start| url.starts_with(start.as_bytes()));
    if is_relative || url.starts_with(b"git://") {
        return percent_decoded(url).contains(&b'\n') || leaves_host(url);
    }

    let schemes = ["http", "https", "ftp", "ftps"];
    let after = |end: &str| {
        schemes
            .iter()
            .find_map(|scheme| url.strip_prefix(format!("{scheme}{end}").as_bytes()))
    };
    // `https::URL` names the program for the scheme of the URL.
    if let Some(url) = after("::") {
        let scheme = url
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(byte))
            .count();
        let is_scheme = url.first().is_some_and(u8::is_ascii_alphabetic);
        return match url[scheme..].strip_prefix(b"://") {
            Some(remaining) if is_scheme => !is_valid(remaining, url.starts_with(b"file:")),
            _ => true,
        };
    }
    after("://").is_some_and(|remaining| !is_valid(remaining, false))
}

/// Returns whether a relative URL, appended to another one, replaces its host.
fn leaves_host(url: &[u8]) -> bool {
    let (mut remaining, mut climbed) = (url, false);
    loop {
        let is_separator = |at: usize| matches!(remaining.get(at), Some(b'/' | b'\\'));
        if remaining.starts_with(b"..") && is_separator(2) {
            (remaining, climbed) = (&remaining[3..], true);
        } else if remaining.starts_with(b".") && is_separator(1) {
            remaining = &remaining[2..];
        } else {
            return climbed && matches!(remaining.first(), Some(b':' | b'/'));
        }
    }
}

/// Returns whether git can normalize a URL, given without its scheme, and no line break is in it.
fn is_valid(url: &[u8], can_lack_host: bool) -> bool {
    let end = url.iter().position(|byte| b"/?#".contains(byte));
    let (authority, path) = url.split_at(end.unwrap_or(url.len()));
    let (user, host) = match authority.iter().position(|&byte| byte == b'@') {
        Some(at) => (&authority[..at], &authority[at + 1..]),
        None => (&authority[..0], authority),
    };
    let colon = host.iter().rposition(|byte| matches!(byte, b':' | b']'));
    let colon = colon.filter(|&at| host[at] == b':');
    let (name, port) = match colon {
        Some(at) => (&host[..at], &host[at + 1..]),
        None => (host, &host[..0]),
    };

    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || HOST.contains(byte);
    (can_lack_host || !name.is_empty())
        && name.iter().all(is_host)
        && is_port(port)
        && [user, path].iter().all(|part| has_valid_escapes(part))
        && !climbs_above_root(path)
        && !percent_decoded(url).contains(&b'\n')
}

fn is_port(port: &[u8]) -> bool {
    let text = std::str::from_utf8(port).unwrap_or("x");
    text.is_empty()
        || text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn climbs_above_root(path: &[u8]) -> bool {
    let end = path.iter().position(|byte| b"?#".contains(byte));
    let path = percent_decoded(&path[..end.unwrap_or(path.len())]);
    let mut depth = 0_usize;
    for part in path.split(|&byte| byte == b'/').skip(1) {
        match part {
            b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

fn has_valid_escapes(text: &[u8]) -> bool {
    let mut escapes = text.split(|&byte| byte == b'%').skip(1);
    escapes
        .all(|remaining| remaining.len() >= 2 && remaining[..2].iter().all(u8::is_ascii_hexdigit))
}

/// Reads settings as git does, up to the first syntax error. In a blob, git takes a byte order mark for
/// one.
fn settings(contents: &[u8]) -> Vec<Setting> {
    let mut reader = SettingsReader {
        remaining: contents,
        parsed: Vec::new(),
    };
    // What was read before an error counts.
    let _ = reader.read();
    reader.parsed
}

struct SettingsReader<'a> {
    remaining: &'a [u8],
    parsed: Vec<Setting>,
}

impl SettingsReader<'_> {
    /// Returns the next byte; a line break for CRLF and at the end.
    fn next(&mut self) -> u8 {
        if let Some(remaining) = self.remaining.strip_prefix(b"\r\n") {
            self.remaining = remaining;
            return b'\n';
        }
        let (first, remaining) = self.remaining.split_first().unwrap_or((&b'\n', &[]));
        self.remaining = remaining;
        *first
    }

    /// Returns `None` after a syntax error.
    fn read(&mut self) -> Option<()> {
        let mut section = Vec::new();
        while !self.remaining.is_empty() {
            match self.next() {
                b'#' | b';' => while self.next() != b'\n' {},
                byte if is_space(byte) => {}
                b'[' => section = self.section()?,
                byte if byte.is_ascii_alphabetic() => {
                    let mut name = section.clone();
                    name.push(byte.to_ascii_lowercase());
                    self.setting(name)?;
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Reads `name]` or `name "subsection"]`; returns both with a dot behind each.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                b']' => break,
                byte if is_space(byte) => {
                    self.subsection(byte, &mut name)?;
                    break;
                }
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
        name.push(b'.');
        Some(name)
    }

    fn subsection(&mut self, space: u8, name: &mut Vec<u8>) -> Option<()> {
        let mut byte = space;
        while is_space(byte) {
            if byte == b'\n' {
                return None;
            }
            byte = self.next();
        }
        if byte != b'"' {
            return None;
        }

        name.push(b'.');
        loop {
            match self.next() {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next() {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        (self.next() == b']').then_some(())
    }

    /// Reads the rest of a name, and the value.
    fn setting(&mut self, mut name: Vec<u8>) -> Option<()> {
        let mut byte = self.next();
        while is_key(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return None,
        };
        self.parsed.push(Setting { name, value });
        Some(())
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut is_quoted) = (Vec::new(), false);
        // The length without spaces at the end.
        let mut length = 0;
        loop {
            match self.next() {
                b'\n' if is_quoted => return None,
                b'\n' => break,
                byte if is_space(byte) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !is_quoted => {
                    while self.next() != b'\n' {}
                    break;
                }
                b'\\' => match self.next() {
                    b'\n' => continue,
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                b'"' => is_quoted = !is_quoted,
                byte => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        Some(value)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, contents: &str, expected: &str) {
        let parsed = refused(name, contents.as_bytes());
        assert_eq!(parsed.as_deref().unwrap_or(""), expected, "{contents}");
    }

    #[test]
    fn a_long_line_of_attributes_is_refused() {
        let reason = "line 2 has 2048 bytes or more, which git refuses";
        check(
            ".gitattributes",
            &format!("a b\n{}\n", "x".repeat(2048)),
            reason,
        );
        check(
            ".GITATTRIBUTES",
            &format!("a b\n{}", "x".repeat(2048)),
            reason,
        );
        check(".gitattributes", &"x".repeat(2047), "");
        check(".gitattributes", &format!("\0{}", "x".repeat(3000)), "");
        check(".gitignore", &"x".repeat(3000), "");
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let read = |text: &str| {
            let display = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let parsed = settings(text.as_bytes());
            let line = |setting: &Setting| match &setting.value {
                Some(value) => format!("{}={}", display(&setting.name), display(value)),
                None => display(&setting.name),
            };
            parsed.iter().map(line).collect::<Vec<_>>().join("|")
        };
        let check = |text: &str, expected: &str| assert_eq!(read(text), expected, "{text}");
        check(
            "[Submodule \"A \\\"b\\\\\"] Url = x y  ; no\r\n",
            "submodule.A \"b\\.url=x y",
        );
        check("[a.B]\nc\nd=\n", "a.b.c|a.b.d=");
        check("[a]b = \" #x\" y\\\nz\\n", "a.b= #x yz\n");
        check("\u{feff}[a]\nb=1\n", "");
        check("# c\n[a]\nb=1\n?\nc=2\n", "a.b=1");
        check("[a]\nb=1\nc=\"x\n", "a.b=1");
    }

    #[test]
    fn what_git_refuses_in_a_submodule_is_refused() {
        let module = |text: &str| format!("[submodule \"a\"]\n\t{text}\n");
        let check_url = |url: &str, is_refused: bool| {
            let parsed = refused(
                ".gitmodules",
                module(&format!("url = \"{url}\"")).as_bytes(),
            );
            assert_eq!(parsed.is_some(), is_refused, "{url}");
        };
        for url in [
            "-u",
            "../%0aevil",
            "git://host/%0Ax",
            "../../../:evil",
            ".././//x",
            "https:///x",
            "https://ho st/x",
            "https://host/%0a",
            "https://host/%zz",
            "https://host:0/x",
            "https://host:70000/x",
            "https://host/../x",
            "http::host/x",
            "https::https://a/%0a",
        ] {
            check_url(url, true);
        }
        for url in [
            "https://user:pw@host:8080/a/../b?c#d",
            "https://[::1]:80/x",
            "https://host",
            "../sibling",
            "./x:y",
            "git@host:a/b.git",
            "ssh://-x/y",
            "/srv/%0a",
            "https::https://host/x",
        ] {
            check_url(url, false);
        }

        check(
            ".gitmodules",
            "[submodule \"a/../b\"]\npath = x\n",
            "git refuses the submodule name `a/../b`",
        );
        check(
            ".gitmodules",
            &module("path = -x"),
            "git refuses the path `-x` of submodule `a`",
        );
        check(
            ".gitmodules",
            &module("update = !rm -rf ."),
            "git refuses the update command `!rm -rf .` of submodule `a`",
        );
        check(".gitmodules", &module("url = x\n\tpath = y/-z"), "");
        check(".gitmodules", "[submodule]\n\turl = -x\n", "");
    }
}
