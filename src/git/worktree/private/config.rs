//! Generates the configuration of the commands' git directory: settings of the user's repository
//! that affect files and history, but none that runs a program except filters.
//!
//! git reads the user's global configuration itself. Filters of the repository, for example LFS,
//! are copied because files would have other content without them. They run with the rights of the
//! command, and only commands run git in this directory.

use std::fmt::Write as _;

use gix::bstr::{BStr, BString, ByteSlice};
use gix::config::Source;

use crate::git::repository::Repository;
use crate::host::clock;

/// Section, whether the keys are in subsections, and the keys to copy.
type HarmlessSection = (&'static str, bool, &'static [&'static str]);

const HARMLESS_KEYS: [HarmlessSection; 18] = [
    (
        "core",
        false,
        &[
            "abbrev",
            "attributesfile",
            "autocrlf",
            "bigfilethreshold",
            "checkstat",
            "commentchar",
            "commentstring",
            "eol",
            "excludesfile",
            "filemode",
            "ignorecase",
            "precomposeunicode",
            "protecthfs",
            "protectntfs",
            "quotepath",
            "safecrlf",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
            "trustctime",
            "usereplacerefs",
            "whitespace",
        ],
    ),
    ("apply", false, &["ignorewhitespace", "whitespace"]),
    (
        "branch",
        true,
        &["description", "merge", "rebase", "remote"],
    ),
    ("commit", false, &["cleanup", "status", "verbose"]),
    (
        "diff",
        false,
        &[
            "algorithm",
            "context",
            "ignoresubmodules",
            "interhunkcontext",
            "mnemonicprefix",
            "noprefix",
            "orderfile",
            "renamelimit",
            "renames",
            "submodule",
            "suppressblankempty",
            "wordregex",
        ],
    ),
    ("diff", true, &["binary", "wordregex", "xfuncname"]),
    ("filter", true, &["clean", "process", "required", "smudge"]),
    ("i18n", false, &["commitencoding", "logoutputencoding"]),
    ("init", false, &["defaultbranch"]),
    ("lfs", false, &["fetchexclude", "fetchinclude", "url"]),
    ("log", false, &["date", "decorate", "follow", "mailmap"]),
    (
        "merge",
        false,
        &[
            "conflictstyle",
            "directoryrenames",
            "ff",
            "renamelimit",
            "renames",
            "renormalize",
        ],
    ),
    ("pull", false, &["ff", "rebase"]),
    ("rebase", false, &["autosquash", "autostash", "updaterefs"]),
    (
        "remote",
        true,
        &["fetch", "partialclonefilter", "promisor", "tagopt", "url"],
    ),
    (
        "status",
        false,
        &["relativepaths", "showuntrackedfiles", "submodulesummary"],
    ),
    ("submodule", true, &["active", "branch", "url"]),
    ("versionsort", false, &["suffix"]),
];

/// Settings for commands that override the user's: no hooks, no other programs, no signing because
/// no user can unlock the key, no background maintenance. `alternateRefsCommand` keeps `git fetch`
/// from listing the refs of the repository whose objects are borrowed: commands cannot open it, and
/// have a copy of its refs.
const FIXED_SETTINGS: &str = "\
[core]
\tbare = false
\tlogAllRefUpdates = true
\thooksPath = /dev/null
\talternateRefsCommand = true
\tfsmonitor = false
\tuntrackedCache = false
[commit]
\tgpgSign = false
[tag]
\tgpgSign = false
[push]
\tgpgSign = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[index]
\tsparse = false
[advice]
\tdetachedHead = false
";

pub(super) fn generate_config(user: &Repository) -> Vec<u8> {
    let mut text = format_section(user).into_bytes();
    let snapshot = user.gix.config_snapshot();
    for section in snapshot.plumbing().sections() {
        let local = matches!(section.meta().source, Source::Local | Source::Worktree);
        let header = section.header();
        let (name, subsection) = (header.name().to_str_lossy(), header.subsection_name());
        let Some(keys) = harmless_keys(&name, subsection.is_some()).filter(|_| local) else {
            continue;
        };
        let body = section.body();
        let mut names: Vec<String> = body.value_names().collect();

        names.dedup();
        names.retain(|key| keys.contains(&key.to_ascii_lowercase().as_str()));
        if names.is_empty() {
            continue;
        }

        text.extend(section_header(&name, subsection));
        for key in names {
            if body.value_implicit(&key) == Some(None) {
                text.extend(format!("\t{key}\n").bytes());
                continue;
            }
            for value in body.values(&key) {
                text.extend(config_line(&key, without_password(&value).as_ref()));
            }
        }
    }

    let (author, _) = user.signatures(gix::date::Time {
        seconds: clock::now().timestamp().as_second(),
        offset: 0,
    });
    text.extend(section_header("user", None));
    text.extend(config_line("name", &author.name));
    text.extend(config_line("email", &author.email));
    text.extend(FIXED_SETTINGS.bytes());

    text
}

/// Returns the repository format, which must come first.
fn format_section(user: &Repository) -> String {
    let sha256 = user.gix.object_hash() != gix::hash::Kind::Sha1;
    let promisor = user.config("extensions.partialClone");
    let version = u8::from(sha256 || promisor.is_some());
    let mut text = format!("[core]\n\trepositoryFormatVersion = {version}\n");
    if version > 0 {
        text.push_str("[extensions]\n");
    }

    if sha256 {
        let _ = writeln!(text, "\tobjectFormat = {}", user.gix.object_hash());
    }

    if let Some(remote) = promisor {
        text.push_str(&String::from_utf8_lossy(&config_line(
            "partialClone",
            remote.as_bytes(),
        )));
    }

    text
}

fn harmless_keys(section: &str, has_subsection: bool) -> Option<&'static [&'static str]> {
    let is_it = |(name, subsection, _): &&HarmlessSection| {
        name.eq_ignore_ascii_case(section) && *subsection == has_subsection
    };
    HARMLESS_KEYS.iter().find(is_it).map(|(_, _, keys)| *keys)
}

fn section_header(name: &str, subsection: Option<&BStr>) -> Vec<u8> {
    let mut text = format!("[{name}").into_bytes();
    if let Some(subsection) = subsection {
        text.extend(b" \"");
        for &byte in subsection.iter() {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.push(b'"');
    }

    text.extend(b"]\n");
    text
}

fn config_line(key: &str, value: &[u8]) -> Vec<u8> {
    let mut text = format!("\t{key} = \"").into_bytes();
    for &byte in value {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', byte]),
            b'\n' => text.extend(b"\\n"),
            b'\t' => text.extend(b"\\t"),
            // git does not allow NUL, and gix would end the value there.
            0 => {}
            _ => text.push(byte),
        }
    }

    text.extend(b"\"\n");
    text
}

/// Removes the password or token from a URL.
fn without_password(value: &BString) -> BString {
    let Some((scheme, address)) = value.split_once_str("://") else {
        return value.clone();
    };
    let host = address.find_byte(b'/').unwrap_or(address.len());
    let Some(at) = address[..host].rfind_byte(b'@') else {
        return value.clone();
    };
    let user = &address[..at];

    // `git` in `ssh://git@host` is a user name, but `https://token@host` contains a token.
    let keeps = !user.contains(&b':') && scheme.eq_ignore_ascii_case(b"ssh");
    if keeps {
        return value.clone();
    }

    [scheme, b"://", &address[at + 1..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_address(address: &str, expected: &str) {
        assert_eq!(without_password(&address.into()), expected);
    }

    #[test]
    fn the_password_of_an_address_is_not_copied() {
        check_address("https://u:secret@host/x", "https://host/x");
        check_address("https://token@host", "https://host");
        check_address("https://host/a@b", "https://host/a@b");
        check_address("ssh://git@host/x", "ssh://git@host/x");
        check_address("git@host:x", "git@host:x");
        check_address("/a/path", "/a/path");
    }

    #[track_caller]
    fn check_line(value: &[u8], expected: &str) {
        let text = [
            section_header("remote", Some(b"a\"b\\".into())),
            config_line("url", value),
        ]
        .concat();
        assert_eq!(text.as_bstr(), expected);
        let read = gix::config::File::try_from(text.to_str().unwrap()).unwrap();
        let read = read.raw_value_by("remote", Some(b"a\"b\\".into()), "url");
        assert_eq!(read.unwrap().as_slice(), value);
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        let head = "[remote \"a\\\"b\\\\\"]\n\turl = ";
        check_line(b" x;#\"\\", &format!("{head}\" x;#\\\"\\\\\"\n"));
        check_line(b"a\n\tb", &format!("{head}\"a\\n\\tb\"\n"));
    }

    #[test]
    fn what_runs_a_program_is_not_copied() {
        for (section, has_subsection, key) in [
            ("core", false, "fsmonitor"),
            ("core", false, "hookspath"),
            ("core", false, "sshcommand"),
            ("core", false, "pager"),
            ("core", false, "editor"),
            ("core", false, "worktree"),
            ("core", false, "gitproxy"),
            ("diff", false, "external"),
            ("diff", true, "textconv"),
            ("diff", true, "command"),
            ("merge", true, "driver"),
            ("submodule", true, "update"),
            ("remote", true, "uploadpack"),
            ("remote", true, "vcs"),
            ("alias", false, "x"),
            ("credential", false, "helper"),
            ("gpg", false, "program"),
            ("include", false, "path"),
            ("http", false, "extraheader"),
            ("url", true, "insteadof"),
        ] {
            let keys = harmless_keys(section, has_subsection).unwrap_or_default();
            assert!(!keys.contains(&key), "{section}.{key}");
        }
        assert!(harmless_keys("CORE", false).is_some_and(|keys| keys.contains(&"autocrlf")));
    }
}
