//! Session names: kebab-case, so they are valid as refs, directories and arguments.
//!
//! A fetched session is named `<remote>/<session>`. It is read-only.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::git::refs::{REMOTES_SIGNED_PREFIX, SIGNED_PREFIX};
use crate::text::{floor_char_boundary, is_kebab};

/// In bytes.
pub const MAX_NAME: usize = 100;

/// `<name>`, `change/<id>` for the session of a change, or either after `<remote>/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct SessionName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("`{0}` is too long for a session name: it has more than {MAX_NAME} characters")]
    Long(String),
    /// It is not kebab-case, or is the reserved name `change`.
    #[error(
        "`{0}` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`"
    )]
    Form(String),
    #[error(
        "`{0}` cannot be a session name, because it could be a turn: a number, or an abbreviated commit id"
    )]
    Turn(String),
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("`{0}` is a session of a remote, and can only be looked at")]
pub struct NotOwn(pub SessionName);

impl SessionName {
    /// For a new session.
    pub fn parse(text: &str) -> Result<SessionName, NameError> {
        // `teddy diff 3` and `teddy diff 1a2b3c4` must stay unambiguous.
        if is_turn(text) {
            return Err(NameError::Turn(text.to_owned()));
        }

        if text.contains('/') {
            Err(form(text))
        } else {
            SessionName::from_ref(text)
        }
    }

    /// Also allows the session of a change.
    pub fn from_ref(text: &str) -> Result<SessionName, NameError> {
        let is_name = match text.strip_prefix("change/") {
            Some(id) => id.len() <= MAX_NAME && is_kebab(id),
            None => text.len() <= MAX_NAME && is_kebab(text) && text != "change",
        };
        if is_name {
            Ok(SessionName(text.to_owned()))
        } else {
            Err(form(text))
        }
    }

    /// For read access: a local session, or one of a remote such as `origin/add-auth`. Does not
    /// check that the remote exists.
    pub fn from_address(text: &str) -> Result<SessionName, NameError> {
        let own = SessionName::from_ref(text);
        if own.is_ok() {
            return own;
        }

        // The name of a remote can contain slashes.
        let (remote, name) = match text.rsplit_once("/change/") {
            Some((remote, id)) => (remote, format!("change/{id}")),
            None => match text.rsplit_once('/') {
                Some((remote, name)) => (remote, name.to_owned()),
                None => return own,
            },
        };
        let is_remote = remote != "change" && !remote.is_empty() && !remote.starts_with('-');
        // git allows none of these characters in a ref.
        let plain = |c: char| !c.is_control() && !" ~^:?*[\\".contains(c);
        match SessionName::from_ref(&name) {
            Ok(name) if is_remote && remote.chars().all(plain) => Ok(name.at(remote)),
            _ => Err(form(text)),
        }
    }

    /// For write access. Fails with [`NotOwn`] for a session of a remote.
    pub fn own_from_address(text: &str) -> anyhow::Result<SessionName> {
        let name = SessionName::from_address(text)?;
        name.writable()?;
        Ok(name)
    }

    pub fn at(&self, remote: &str) -> SessionName {
        SessionName(format!("{remote}/{}", self.0))
    }

    /// `None` for a local session.
    pub fn remote(&self) -> Option<&str> {
        let (remote, _) = self.0.rsplit_once('/')?;
        match remote.strip_suffix("/change") {
            Some(remote) => Some(remote),
            None => (remote != "change").then_some(remote),
        }
    }

    pub fn own(&self) -> SessionName {
        let start = self.remote().map_or(0, |remote| remote.len() + 1);
        SessionName(self.0[start..].to_owned())
    }

    pub fn writable(&self) -> Result<(), NotOwn> {
        match self.remote() {
            Some(_) => Err(NotOwn(self.clone())),
            None => Ok(()),
        }
    }

    /// `Add a greeting!` becomes `add-a-greeting`.
    pub fn from_title(title: &str) -> SessionName {
        let tokens: Vec<String> = title
            .to_lowercase()
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|w| !w.is_empty())
            .map(str::to_owned)
            .collect();
        let mut name = String::new();
        for word in tokens.iter().take_while(|w| w.len() <= 30) {
            if name.len() + word.len() > 40 {
                break;
            }

            name = if name.is_empty() {
                word.clone()
            } else {
                format!("{name}-{word}")
            };
        }

        SessionName::parse(&name).unwrap_or_else(|_| SessionName("session".to_owned()))
    }

    /// The name of a new session as a user types it: `My session` becomes `my-session`.
    pub fn from_words(text: &str) -> Result<SessionName, NameError> {
        let is_title = text.chars().any(char::is_whitespace);
        let has_word = text.chars().any(|c| c.is_ascii_alphanumeric());
        match is_title && has_word {
            true => Ok(SessionName::from_title(text)),
            false => SessionName::parse(text),
        }
    }

    pub fn numbered(&self, number: usize) -> SessionName {
        SessionName(fitting(&self.0, &format!("-{number}")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A single path component.
    pub fn dir_name(&self) -> String {
        // Unique, because names contain no dots.
        self.0.replace('/', ".")
    }

    /// A file with what was computed of the session.
    pub fn cache_file(&self, teddy_dir: &Path, kind: &str) -> PathBuf {
        teddy_dir.join(kind).join(self.dir_name())
    }

    /// For local sessions.
    pub fn from_dir_name(text: &str) -> Option<SessionName> {
        match text.strip_prefix("change.") {
            Some(id) => SessionName::from_ref(&format!("change/{id}")).ok(),
            None => SessionName::from_ref(text).ok(),
        }
    }

    pub fn reference(&self) -> String {
        let prefix = if self.remote().is_some() {
            REMOTES
        } else {
            SESSIONS
        };
        format!("{prefix}{}", self.0)
    }

    pub fn draft_reference(&self) -> String {
        format!("{DRAFTS}{}", self.0)
    }

    pub fn signed_reference(&self) -> String {
        let prefix = if self.remote().is_some() {
            REMOTES_SIGNED_PREFIX
        } else {
            SIGNED_PREFIX
        };
        format!("{prefix}{}", self.0)
    }
}

pub const SESSIONS: &str = "refs/teddy/sessions/";
/// The name of the remote follows.
pub const REMOTES: &str = "refs/teddy/remotes/";
pub const DRAFTS: &str = "refs/teddy/drafts/";

/// `base`, cut so that `suffix` fits.
pub fn fitting(base: &str, suffix: &str) -> String {
    let room = MAX_NAME.saturating_sub(suffix.len());
    let end = floor_char_boundary(base, room);
    format!("{}{suffix}", base[..end].trim_end_matches('-'))
}

// git's default abbreviation.
const MIN_ID: usize = 7;

fn is_turn(text: &str) -> bool {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // Words such as `defaced` are hexadecimal, too, and stay possible.
    let is_id = text.len() >= MIN_ID
        && text.bytes().all(|b| b.is_ascii_hexdigit())
        && text.bytes().any(|b| b.is_ascii_digit());
    is_number || is_id
}

fn form(text: &str) -> NameError {
    let rendered = crate::text::sanitize::sanitize_line(text).into_owned();
    match text.len() > MAX_NAME {
        true => NameError::Long(rendered),
        false => NameError::Form(rendered),
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case() {
        for good in ["a", "add-auth", "v2", "20260124-add-user-auth"] {
            assert!(SessionName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "", "A", "a b", "../x", "a--b", "-a", "a-", "a_b", "a/b", "change", "ü", "a\n", "HEAD",
            "@",
        ] {
            assert!(SessionName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(SessionName::from_ref("change/x-1").is_ok());
        assert!(SessionName::from_ref("other/x").is_err());
        for name in ["change/x-1", "x-1", "change-x"] {
            let name = SessionName::from_ref(name).expect("a good name");
            assert_eq!(SessionName::from_dir_name(&name.dir_name()), Some(name));
        }
        assert_eq!(SessionName::from_dir_name("_replay"), None);
    }

    #[test]
    fn a_number_fits_into_the_longest_name() {
        let name = |length| SessionName::parse(&"x".repeat(length)).expect("a good name");
        assert_eq!(name(98).numbered(2).as_str(), format!("{}-2", name(98)));
        assert_eq!(name(100).numbered(10).as_str(), format!("{}-10", name(97)));
    }

    #[test]
    fn a_session_of_a_remote_is_told_from_ones_own() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let name = SessionName::from_address(text).expect(text);
            let own = name.own();
            let actual = name.remote().map(|remote| (remote, own.as_str()));
            assert_eq!(actual, expected, "{text}");
            assert_eq!(name.as_str(), text);
        };
        check("add-auth", None);
        check("change/x", None);
        check("origin/add-auth", Some(("origin", "add-auth")));
        check("origin/change/x", Some(("origin", "change/x")));
        check("team/ada/s", Some(("team/ada", "s")));
        for bad in [
            "origin/",
            "/s",
            "-u/s",
            "origin/S",
            "a b/s",
            "origin/change",
            "a:b/s",
            "change/change/x",
        ] {
            assert!(SessionName::from_address(bad).is_err(), "{bad}");
        }
        let remote_name = SessionName::from_address("origin/s").expect("a good name");
        assert_eq!(remote_name.reference(), "refs/teddy/remotes/origin/s");
        assert!(remote_name.writable().is_err() && remote_name.own().writable().is_ok());
    }

    #[test]
    fn t1_a_new_name_does_not_read_as_a_turn() {
        for turn in ["1", "007", "20260124", "3ae29549", "0f0f0f0"] {
            assert_eq!(
                SessionName::parse(turn),
                Err(NameError::Turn(turn.to_owned()))
            );
            assert!(
                SessionName::from_ref(turn).is_ok(),
                "{turn}: a session that has it is reached"
            );
        }
        for name in ["1-2", "v1", "facade", "defaced", "3ae295"] {
            assert!(SessionName::parse(name).is_ok(), "{name}");
        }
        assert_eq!(SessionName::from_title("2026").as_str(), "session");
    }

    #[test]
    fn a_title_becomes_a_name() {
        let check = |title: &str, expected: &str| {
            assert_eq!(SessionName::from_title(title).as_str(), expected)
        };
        check("Add a greeting!", "add-a-greeting");
        check("Écrire `x`", "crire-x");
        check("🐻", "session");
        check("change", "session");
        check(
            "This title is so long that it would make a very poor name for a ref",
            "this-title-is-so-long-that-it-would-make",
        );
    }
}
