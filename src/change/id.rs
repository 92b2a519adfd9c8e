//! Change ids: kebab-case, so they are valid as refs, sessions and arguments.

use std::fmt;

use crate::session::name::SessionName;
use crate::text::is_kebab;

pub const CHANGES: &str = "refs/teddy/changes/";
/// In bytes.
pub const MAX_ID: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct ChangeId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid change id: use lower-case letters, digits and single hyphens, such as `add-auth`"
)]
pub struct IdError(String);

impl ChangeId {
    pub fn parse(text: &str) -> Result<ChangeId, IdError> {
        if is_id(text) {
            Ok(ChangeId(text.to_owned()))
        } else {
            Err(IdError(
                crate::text::sanitize::sanitize_line(text).into_owned(),
            ))
        }
    }

    /// `None` if the session does not belong to a change.
    pub fn of_session(session: &SessionName) -> Option<ChangeId> {
        ChangeId::parse(session.as_str().strip_prefix("change/")?).ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn reference(&self) -> String {
        format!("{CHANGES}{}", self.0)
    }

    pub fn session(&self) -> SessionName {
        SessionName::from_ref(&format!("change/{}", self.0)).expect("an id is a kebab-case name")
    }
}

/// For a change or a spec.
pub fn is_id(text: &str) -> bool {
    text.len() <= MAX_ID && is_kebab(text)
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a24_an_id_is_lower_case_letters_digits_and_hyphens() {
        for good in ["a", "add-auth", "v2-0", "20260124-login"] {
            assert!(ChangeId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "Add Auth",
            "../x",
            "a_b",
            "a/b",
            "-a",
            "a-",
            "a--b",
            "ü",
            "a\n",
            "a.lock",
            "@",
            "HEAD",
            &"a".repeat(81),
        ] {
            assert!(ChangeId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_id_names_a_ref_and_a_session() {
        let id = ChangeId::parse("add-auth").unwrap();
        assert_eq!(
            (id.reference().as_str(), id.session().as_str()),
            ("refs/teddy/changes/add-auth", "change/add-auth")
        );
    }
}
