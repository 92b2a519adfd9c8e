//! Finds the sessions among the refs of a bundle. Ref names are untrusted input.

use std::collections::BTreeMap;

use super::manifest;
use crate::git::bundle::BundledRef;
use crate::git::object::CommitId;
use crate::git::refs::signed::SIGNED_PREFIX;
use crate::session::name::{DRAFTS, SESSIONS, SessionName};
use crate::text::sanitize::{sanitize_bytes, sanitize_line};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BundleRefs {
    pub(super) sessions: BTreeMap<SessionName, SessionRefs>,
    pub(super) manifest: Option<CommitId>,
    /// Refs that TeDDy does not use, escaped for display.
    pub(super) ignored: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionRefs {
    pub(super) tip: CommitId,
    pub(super) signature: Option<CommitId>,
    pub(super) draft: Option<CommitId>,
}

/// Groups refs by session. Fails on duplicate or invalid session names; signatures and drafts
/// without a session are ignored.
pub(super) fn group_refs(refs: &[BundledRef]) -> Result<BundleRefs, String> {
    let mut by_name: BTreeMap<&str, CommitId> = BTreeMap::new();
    let mut selected = BundleRefs::default();
    for reference in refs {
        let label = display_ref_name(&reference.name);
        let Some(name) = parse_own_name(&reference.name) else {
            selected.ignored.push(label);
            continue;
        };
        if by_name.insert(name, reference.target).is_some() {
            return Err(format!("it has `{label}` twice"));
        }
    }

    selected.manifest = by_name.remove(manifest::MANIFEST_REF);
    for (name, target) in strip_prefix_of(&by_name, SESSIONS) {
        let session = SessionName::from_ref(name).map_err(|error| error.to_string())?;
        let refs = SessionRefs {
            tip: target,
            signature: None,
            draft: None,
        };
        selected.sessions.insert(session, refs);
    }

    for (prefix, is_draft) in [(SIGNED_PREFIX, false), (DRAFTS, true)] {
        for (name, target) in strip_prefix_of(&by_name, prefix) {
            let session = SessionName::from_ref(name).map_err(|error| error.to_string())?;
            match selected.sessions.get_mut(&session) {
                Some(refs) if is_draft => refs.draft = Some(target),
                Some(refs) => refs.signature = Some(target),
                None => selected.ignored.push(format!("{prefix}{name}")),
            }
        }
    }

    Ok(selected)
}

/// `None` for refs that are not TeDDy's, or not UTF-8.
fn parse_own_name(name: &[u8]) -> Option<&str> {
    let prefixes = [SESSIONS, SIGNED_PREFIX, DRAFTS];
    let is_ours = name == manifest::MANIFEST_REF.as_bytes()
        || prefixes
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()));
    is_ours.then(|| str::from_utf8(name).ok())?
}

fn strip_prefix_of<'a>(
    by_name: &'a BTreeMap<&str, CommitId>,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a str, CommitId)> {
    let all = by_name.iter();
    all.filter_map(move |(name, target)| Some((name.strip_prefix(prefix)?, *target)))
}

fn display_ref_name(name: &[u8]) -> String {
    sanitize_line(&sanitize_bytes(name)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1465b844761618fe5910618bbc86deda6df5f057";

    #[track_caller]
    fn check(names: &[&[u8]], expected: Result<(&str, &str), &str>) {
        let one = |name: &&[u8]| BundledRef {
            name: name.to_vec(),
            target: ONE.parse().unwrap(),
        };
        let refs: Vec<_> = names.iter().map(one).collect();
        let actual = group_refs(&refs).map(|selected| {
            let word = |(name, refs): (&SessionName, &SessionRefs)| {
                let marks = [(refs.signature, "+signed"), (refs.draft, "+draft")];
                let marks = marks.iter().filter(|(id, _)| id.is_some());
                format!("{name}{}", marks.map(|(_, mark)| *mark).collect::<String>())
            };
            let sessions: Vec<_> = selected.sessions.iter().map(word).collect();
            (sessions.join(" "), selected.ignored.join(" "))
        });

        let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn b3_refs_of_other_kinds_are_ignored() {
        check(
            &[
                b"refs/teddy/sessions/b",
                b"refs/teddy/sessions/change/a",
                b"refs/teddy/signed/b",
                b"refs/teddy/drafts/b",
                b"refs/teddy/manifest",
            ],
            Ok(("b+signed+draft change/a", "")),
        );
        check(
            &[
                b"refs/heads/main",
                b"HEAD",
                b"refs/teddy/published/main",
                b"refs/teddy/signed/alone",
                b"../\x1b[2Jx",
                b"refs/teddy/sessions/a",
            ],
            Ok((
                "a",
                "refs/heads/main HEAD refs/teddy/published/main ../\\u{1b}[2Jx \
                 refs/teddy/signed/alone",
            )),
        );
    }

    #[test]
    fn b3_names_that_no_session_can_have_are_refused() {
        let odd = |name: &str| {
            format!(
                "`{name}` is not a valid session name: use lower-case letters, digits and single \
                 hyphens, such as `add-auth`"
            )
        };
        for name in ["A", "../x", "change", "a.lock", ""] {
            let full = format!("refs/teddy/sessions/{name}");
            check(&[full.as_bytes()], Err(&odd(name)));
        }
        let twice: &[u8] = b"refs/teddy/sessions/a";
        check(&[twice, twice], Err("it has `refs/teddy/sessions/a` twice"));
    }
}
