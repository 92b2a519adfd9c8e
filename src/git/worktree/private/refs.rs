//! A copy of the user's refs, for commands to read: one file, however many there are.

use gix::refs::Target;

use crate::git::repository::Repository;

/// The first line of the file. It does not promise that annotated tags are followed: git does that
/// when it needs to.
const HEADER: &[u8] = b"# pack-refs with: sorted \n";
/// Refs that are no command's business: what TeDDy keeps, a stash that a careless `git stash pop`
/// would take for its own, and what belongs to one checkout.
const LEFT_OUT: [&[u8]; 5] = [
    b"refs/teddy/",
    b"refs/stash",
    b"refs/bisect/",
    b"refs/rewritten/",
    b"refs/worktree/",
];

/// The refs of a repository as files of another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refs {
    /// What is to be in `packed-refs`.
    pub(super) packed: Vec<u8>,
    /// Symbolic refs, which cannot be packed: name and content.
    pub(super) symbolic: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Copies the user's refs; one that cannot be read is left out.
///
/// # Errors
/// Where they cannot be listed.
pub(super) fn of(user: &Repository) -> anyhow::Result<Refs> {
    let (mut direct, mut symbolic) = (Vec::new(), Vec::new());
    for (name, target) in user.refs.all()?.refs {
        let name = name.as_bstr();
        if LEFT_OUT.iter().any(|start| name.starts_with(start)) {
            continue;
        }

        match target {
            Target::Object(id) => direct.push((name.to_vec(), id)),
            Target::Symbolic(target) => {
                let text = format!("ref: {}\n", target.as_bstr()).into_bytes();
                symbolic.push((name.to_vec(), text));
            }
        }
    }

    direct.sort();
    let mut packed = HEADER.to_vec();
    for (name, id) in direct {
        packed.extend(id.to_hex().to_string().bytes());
        packed.push(b' ');
        packed.extend(name);
        packed.push(b'\n');
    }

    Ok(Refs { packed, symbolic })
}
