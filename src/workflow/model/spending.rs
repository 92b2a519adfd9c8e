//! Caches the total cost of a session, so that a long session is not traversed before each request.

use std::path::PathBuf;

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{read_regular_text, write_cache};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

const CACHE_DIR: &str = "spent";
const MAX_CACHE: u64 = 4096;
/// The cache is only updated after reading more turns than this.
const MIN_CACHED_TURNS: usize = 8;

/// Cost of a session's turns up to this one, in dollars.
pub(super) fn spent_on_turns(project: &Project, tip: &Turn) -> anyhow::Result<f64> {
    let path = cache_path(&project.repository, &tip.session);
    let text = read_regular_text(&path, MAX_CACHE).unwrap_or_default();
    let noted = parse_cached_sum(&text);
    let (mut sum, mut walked) = (0.0, 0);
    for turn in project.store().history(tip.clone()) {
        let Turn { commit, meta, .. } = turn?;
        if let Some((_, before)) = noted.filter(|(turn, _)| *turn == commit) {
            sum += before;
            break;
        }
        sum += meta.spent.or_else(|| meta.model?.cost).unwrap_or(0.0);
        walked += 1;
    }

    if walked > MIN_CACHED_TURNS {
        // The cache only saves time.
        let _ = write_cache(&path, format!("{} {sum}\n", tip.commit).as_bytes());
    }
    Ok(sum)
}

/// Deletes the cached cost of a session.
pub fn forget_spent(repository: &Repository, session: &SessionName) {
    let _ = std::fs::remove_file(cache_path(repository, session));
}

fn cache_path(repository: &Repository, session: &SessionName) -> PathBuf {
    repository
        .teddy_dir()
        .join(CACHE_DIR)
        .join(session.dir_name())
}

fn parse_cached_sum(text: &str) -> Option<(CommitId, f64)> {
    let (turn, sum) = text.strip_suffix('\n')?.split_once(' ')?;
    let sum: f64 = sum.parse().ok()?;
    // A damaged cache must not disable the limit.
    (sum.is_finite() && sum >= 0.0).then_some((turn.parse().ok()?, sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<f64>) {
        assert_eq!(
            parse_cached_sum(text).map(|(_, sum)| sum),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn a_sum_that_is_not_whole_is_none() {
        let id = "56a6051ca2b02b04ef92d5150c9ef600403cb1de";
        check(&format!("{id} 0.125\n"), Some(0.125));
        check(&format!("{id} 0\n"), Some(0.0));
        for wrong in ["0.1", "-1\n", "inf\n", "NaN\n", "x\n", "\n"] {
            check(&format!("{id} {wrong}"), None);
        }
        check("", None);
        check("zz 1\n", None);
    }
}
