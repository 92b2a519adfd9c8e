//! Lists submodules: the nested repositories that `.gitmodules` names.

use std::collections::BTreeSet;

use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::git::user_git::silent_git_for;

/// Returns the paths of the submodules of a tree. A `.gitmodules` that git cannot read names none.
pub fn list_submodules(repository: &Repository, tree: TreeId) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    let entry = repository.entry(tree, b".gitmodules")?;
    let Some(entry) = entry.filter(|entry| entry.is_file()) else {
        return Ok(BTreeSet::new());
    };

    let mut git = silent_git_for(repository)?;
    git.args(["config", "-z", "--blob", &entry.id.to_string()])
        .args(["--get-regexp", r"^submodule\..*\.path$"]);
    let listed = git.output()?.stdout;
    let lines = listed.split(|byte| *byte == 0);
    let path = |line: &[u8]| {
        let end = line.iter().position(|byte| *byte == b'\n')?;
        Some(line[end + 1..].to_vec())
    };
    Ok(lines.filter_map(path).collect())
}
