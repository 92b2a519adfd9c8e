//! What a restore takes out of the user's files and not out of their branch.

use crate::git::object::CommitId;
use crate::session::turn::Turn;
use crate::text::visible::visible;
use crate::workflow::land::turns;
use crate::workflow::project::Project;

/// How many digits of a commit's id are told.
const SHORT: usize = 8;

/// Says which of some turns have landed, as the commits stay where they are; `tip` is the newest
/// turn of their session.
///
/// # Errors
/// If a turn cannot be read.
pub(super) fn still_landed(
    project: &Project,
    tip: &Turn,
    undone: &[u64],
) -> anyhow::Result<Option<String>> {
    let Some(oldest) = undone.iter().min() else {
        return Ok(None);
    };
    let mut found: Vec<(CommitId, Vec<u64>, String)> = Vec::new();
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        // A turn lands after it was recorded.
        if turn.number() <= *oldest {
            break;
        }
        let Some(landed) = turn.meta.landed else {
            continue;
        };
        for commit in landed.commits {
            let numbers = commit.turns.iter().map(|turn| turn.number);
            let numbers: Vec<u64> = numbers.filter(|number| undone.contains(number)).collect();
            if !numbers.is_empty() {
                found.push((commit.commit, numbers, landed.branch.clone()));
            }
        }
    }
    Ok(sentence(&found))
}

/// Says where they are, and how they are taken out.
fn sentence(found: &[(CommitId, Vec<u64>, String)]) -> Option<String> {
    let short = |id: &CommitId| id.to_string()[..SHORT].to_owned();
    let place = |(commit, numbers, branch): &(CommitId, Vec<u64>, String)| {
        let has = if numbers.len() == 1 { "has" } else { "have" };
        let (turns, branch) = (turns(numbers), visible(branch));
        format!("{turns} {has} landed as {} on {branch}", short(commit))
    };
    let places: Vec<String> = found.iter().map(place).collect();
    let commits: Vec<String> = found.iter().map(|(commit, ..)| short(commit)).collect();

    (!places.is_empty()).then(|| {
        format!(
            "{}, which stays there; `git revert {}` takes it back",
            places.join(", "),
            commits.join(" ")
        )
    })
}
