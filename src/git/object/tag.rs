//! Reads annotated tags as untrusted input: nothing in a tag counts before git has verified its
//! signature.

use gix::bstr::ByteSlice as _;
use gix::objs::Kind;

use super::id::{CommitId, TagId};
use crate::git::During as _;
use crate::git::object::absent;
use crate::git::repository::Repository;

/// A tag of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTag {
    /// The tagged commit.
    pub commit: CommitId,
    /// Name in the tag.
    pub name: String,
    /// Tagger as stated in the tag: `Name <address>`.
    pub tagger: String,
    /// Time of the tag in seconds since 1970.
    pub seconds: i64,
}

/// Reads a tag of a commit. Fails if the object is anything else.
pub fn read_signed_tag(repository: &Repository, id: TagId) -> anyhow::Result<SignedTag> {
    let object =
        absent::find(|| repository.gix.find_object(id.0)).during(format_args!("reading `{id}`"))?;
    anyhow::ensure!(
        object.kind == Kind::Tag,
        "`{id}` is a {}, not a tag",
        object.kind
    );
    parse_tag(&object.data)
}

pub(in crate::git) fn parse_tag(bytes: &[u8]) -> anyhow::Result<SignedTag> {
    let head = bytes.split_str("\n\n").next().unwrap_or_default();
    let mut lines = head.lines().map(|line| line.to_str_lossy());
    let mut field = |key: &str| {
        let line = lines.next().unwrap_or_default().into_owned();
        let value = line.strip_prefix(key).and_then(|it| it.strip_prefix(' '));
        value
            .map(str::to_owned)
            .ok_or_else(|| anyhow::anyhow!("it has no `{key}` where a tag has it"))
    };

    let (object, kind) = (field("object")?, field("type")?);
    anyhow::ensure!(kind == "commit", "it is the tag of a {kind}");
    let (name, signature) = (field("tag")?, field("tagger")?);
    let (tagger, time) = signature.rsplit_once("> ").unwrap_or((&signature, ""));
    let seconds = time.split(' ').next().unwrap_or_default();
    Ok(SignedTag {
        commit: object.parse()?,
        name,
        tagger: format!("{}>", tagger.trim_end_matches('>')),
        seconds: seconds.parse().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "1465b844761618fe5910618bbc86deda6df5f057";

    #[test]
    fn the_head_of_a_tag_is_read() {
        let text = format!(
            "object {COMMIT}\ntype commit\ntag teddy/signed/demo\n\
             tagger A <b> C <a@b> 1767322445 +0100\n\nobject x\n"
        );
        let tag = parse_tag(text.as_bytes()).unwrap();
        let expected = SignedTag {
            commit: COMMIT.parse().unwrap(),
            name: "teddy/signed/demo".to_owned(),
            tagger: "A <b> C <a@b>".to_owned(),
            seconds: 1_767_322_445,
        };
        assert_eq!(tag, expected);
    }

    #[test]
    fn what_is_no_tag_of_a_commit_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = parse_tag(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check("", "it has no `object` where a tag has it");
        check(
            &format!("object {COMMIT}\ntype tree\ntag x\ntagger x\n\n"),
            "it is the tag of a tree",
        );
        check(
            &format!("object {COMMIT}\ntype commit\n\ntag x\n"),
            "it has no `tag` where a tag has it",
        );
    }
}
