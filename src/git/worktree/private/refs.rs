//! Copies the user's refs for commands into one `packed-refs` file.

use gix::refs::Target;

use crate::git::repository::Repository;

/// The header does not claim `peeled`, so git peels annotated tags itself.
const PACKED_HEADER: &[u8] = b"# pack-refs with: sorted \n";
/// Refs that are not copied: TeDDy's, the stash, which a careless `git stash pop` would use, and
/// refs of one worktree.
const EXCLUDED_REFS: [&[u8]; 5] = [
    b"refs/teddy/",
    b"refs/stash",
    b"refs/bisect/",
    b"refs/rewritten/",
    b"refs/worktree/",
];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CopiedRefs {
    pub(super) packed: Vec<u8>,
    /// Symbolic refs, which cannot be packed, as name and file content.
    pub(super) symbolic: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Copies the user's refs. Unreadable refs are left out.
pub(super) fn copy_refs(user: &Repository) -> anyhow::Result<CopiedRefs> {
    let (mut direct, mut symbolic) = (Vec::new(), Vec::new());
    for (name, target) in user.refs.all()?.refs {
        let name = name.as_bstr();
        if EXCLUDED_REFS.iter().any(|start| name.starts_with(start)) {
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
    let mut packed = PACKED_HEADER.to_vec();
    for (name, id) in direct {
        packed.extend(id.to_hex().to_string().bytes());
        packed.push(b' ');
        packed.extend(name);
        packed.push(b'\n');
    }

    Ok(CopiedRefs { packed, symbolic })
}
