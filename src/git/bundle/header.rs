//! Parses the header of a bundle as untrusted input: its refs and prerequisites.

use std::io::{BufRead, Read as _};

use gix::ObjectId;

use super::BundleError;
use crate::git::object::CommitId;

/// Upper bound for a header, enough for half a million refs.
const MAX_HEADER: u64 = 64 << 20;
const MAX_HEADER_LINE: usize = 8 << 10;
const HEADER_SIGNATURE: (&str, &str) = ("# v", " git bundle");

/// A ref in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledRef {
    /// Name of the ref; not validated.
    pub name: Vec<u8>,
    /// Object of the ref, possibly a tag.
    pub target: CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleHead {
    /// Prerequisites: commits that the receiving repository must have.
    pub(super) needs: Vec<CommitId>,
    pub(super) refs: Vec<BundledRef>,
    /// Offset of the pack.
    pub(super) length: u64,
}

pub(super) fn read_header(
    source: &mut impl BufRead,
    hash: gix::hash::Kind,
) -> Result<BundleHead, BundleError> {
    let mut lines = HeadLines {
        source: source.take(MAX_HEADER),
        read: 0,
    };
    let version = lines.version()?;
    let mut head = BundleHead {
        needs: Vec::new(),
        refs: Vec::new(),
        length: 0,
    };

    // Version 2 has no capabilities and always uses SHA-1.
    let mut ids = gix::hash::Kind::Sha1;
    loop {
        let line = lines.next()?;
        match line.first() {
            None => break,
            Some(b'@') if version >= 3 => ids = parse_capability(&line, ids)?,
            Some(b'-') => {
                let id = line[1..].split(|&byte| byte == b' ').next();
                head.needs.push(parse_id(id.unwrap_or_default(), ids)?);
            }
            Some(_) => head.refs.push(parse_ref(&line, ids)?),
        }
    }

    if ids != hash {
        return Err(BundleError::OtherIds(ids.to_string(), hash.to_string()));
    }

    head.length = lines.read;
    Ok(head)
}

struct HeadLines<R> {
    source: std::io::Take<R>,
    read: u64,
}

impl<R: BufRead> HeadLines<R> {
    fn version(&mut self) -> Result<u32, BundleError> {
        let line = self.next().map_err(|_| BundleError::NoBundle)?;
        let text = String::from_utf8(line).map_err(|_| BundleError::NoBundle)?;
        let version = text
            .strip_prefix(HEADER_SIGNATURE.0)
            .and_then(|tail| tail.strip_suffix(HEADER_SIGNATURE.1))
            .and_then(|number| number.parse().ok())
            .ok_or(BundleError::NoBundle)?;

        match version {
            2 | 3 => Ok(version),
            _ => Err(BundleError::Newer(format!("version {version}"))),
        }
    }

    fn next(&mut self) -> Result<Vec<u8>, BundleError> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.source).take(MAX_HEADER_LINE as u64);
        let read = bounded.read_until(b'\n', &mut line);

        self.read += read.map_err(|error| BundleError::Unreadable(error.to_string()))? as u64;
        match line.pop() {
            Some(b'\n') => Ok(line),
            Some(_) if line.len() + 1 >= MAX_HEADER_LINE || self.read >= MAX_HEADER => {
                Err(BundleError::Malformed)
            }
            _ => Err(BundleError::Cut),
        }
    }
}

fn parse_capability(line: &[u8], ids: gix::hash::Kind) -> Result<gix::hash::Kind, BundleError> {
    let text = String::from_utf8_lossy(&line[1..]).into_owned();
    match text.split_once('=') {
        Some(("object-format", "sha1")) => Ok(gix::hash::Kind::Sha1),
        Some(("object-format", "sha256")) => Ok(gix::hash::Kind::Sha256),
        Some(("filter", _)) => Err(BundleError::Filtered),
        _ if text.is_empty() => Ok(ids),
        _ => Err(BundleError::Newer(format!("`{text}`"))),
    }
}

fn parse_ref(line: &[u8], ids: gix::hash::Kind) -> Result<BundledRef, BundleError> {
    let at = line.iter().position(|&byte| byte == b' ');
    let (id, name) = line.split_at(at.ok_or(BundleError::Malformed)?);
    Ok(BundledRef {
        name: name[1..].to_vec(),
        target: parse_id(id, ids)?,
    })
}

fn parse_id(text: &[u8], ids: gix::hash::Kind) -> Result<CommitId, BundleError> {
    match ObjectId::from_hex(text) {
        Ok(id) if id.kind() == ids => Ok(CommitId(id)),
        _ => Err(BundleError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1465b844761618fe5910618bbc86deda6df5f057";
    const TWO: &str = "d5469a7a606e61c2b795d0131e4ce3a8c527500a";

    type ExpectedHead<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

    #[track_caller]
    fn check(text: &str, expected: Result<ExpectedHead<'_>, &str>) {
        let actual = read_header(&mut text.as_bytes(), gix::hash::Kind::Sha1);
        let actual = actual.map_err(|error| error.to_string());
        let actual = actual.map(|head| {
            assert_eq!(&text.as_bytes()[head.length as usize..], b"PACK");
            let needs: Vec<String> = head.needs.iter().map(ToString::to_string).collect();
            let refs = head.refs.into_iter();
            let refs: Vec<_> = refs
                .map(|it| (String::from_utf8(it.name).unwrap(), it.target.to_string()))
                .collect();
            (needs, refs)
        });

        let own = |text: &&str| (*text).to_owned();
        let expected = expected.map_err(str::to_owned).map(|(needs, refs)| {
            let refs = refs.iter().map(|(name, id)| (own(name), own(id)));
            (needs.iter().map(own).collect(), refs.collect())
        });
        assert_eq!(actual, expected, "{text:?}");
    }

    #[test]
    fn a_head_names_refs_and_what_the_bundle_builds_on() {
        check(
            &format!("# v2 git bundle\n{ONE} refs/teddy/sessions/a\n\nPACK"),
            Ok((&[], &[("refs/teddy/sessions/a", ONE)])),
        );
        check(
            &format!("# v3 git bundle\n@object-format=sha1\n-{ONE} On top\n{TWO} a b\n\nPACK"),
            Ok((&[ONE], &[("a b", TWO)])),
        );
        check("# v2 git bundle\n\nPACK", Ok((&[], &[])));
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for text in ["", "PACK", "# v2 git bundle", "# vx git bundle\n", "\n"] {
            check(text, Err("it is not a git bundle"));
        }
        check(
            "# v4 git bundle\n",
            Err("it needs a newer TeDDy: it has version 4"),
        );
        check(
            "# v3 git bundle\n@new=1\n\n",
            Err("it needs a newer TeDDy: it has `new=1`"),
        );
        check(
            "# v3 git bundle\n@filter=blob:none\n\n",
            Err("files are missing from it: it was made with a filter"),
        );
        check(
            "# v3 git bundle\n@object-format=sha256\n\n",
            Err("its object ids are sha256, and those of this repository sha1"),
        );
        for line in ["zzz refs/x", ONE, "-12", &"x".repeat(MAX_HEADER_LINE + 1)] {
            check(
                &format!("# v2 git bundle\n{line}\n\n"),
                Err("its head is malformed"),
            );
        }
        for end in ["", ONE, &format!("{ONE} refs/x\n")] {
            check(&format!("# v2 git bundle\n{end}"), Err("it is cut off"));
        }
    }
}
