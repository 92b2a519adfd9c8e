//! Suggests the name that the user probably meant.

// Bounds the time, which is quadratic in the length.
const MAX_LENGTH: usize = 400;

/// Returns the most similar name. `None` if none is likely: a typo, another case, or the same file
/// name in another directory.
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = wanted.to_lowercase();
    let most = wanted.chars().count().min(MAX_LENGTH) / 4 + 1;
    names
        .into_iter()
        .filter_map(|name| Some((distance(&wanted, &name.to_lowercase(), most)?, name)))
        .min_by_key(|(distance, name)| (*distance, name.len(), *name))
        .map(|(_, name)| name)
}

/// `None` if the names are too different.
fn distance(wanted: &str, name: &str, most: usize) -> Option<usize> {
    let is_elsewhere = name
        .strip_suffix(wanted)
        .is_some_and(|folder| folder.ends_with('/'));
    if is_elsewhere {
        return Some(1);
    }

    let [wanted, name] = [wanted, name].map(|name| name.chars().collect::<Vec<_>>());
    let is_comparable =
        wanted.len().abs_diff(name.len()) <= most && wanted.len().max(name.len()) <= MAX_LENGTH;
    let found = is_comparable.then(|| edits(&wanted, &name))?;
    (found <= most && found < wanted.len()).then_some(found)
}

/// Returns the edit distance, with swaps of adjacent letters.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (at, letter) in from.iter().enumerate() {
        let mut row = vec![at + 1];
        for (other, wanted) in to.iter().enumerate() {
            let above = &rows[at];
            let changed = above[other] + usize::from(letter != wanted);
            let mut least = changed.min(above[other + 1] + 1).min(row[other] + 1);
            let is_swap =
                at > 0 && other > 0 && from[at - 1] == *wanted && to[other - 1] == *letter;

            if is_swap {
                least = least.min(rows[at - 1][other - 1] + 1);
            }
            row.push(least);
        }

        rows.push(row);
    }

    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, expected: Option<&str>) {
        let names = ["README.md", "notes.md", "src/lib.rs", "src/main.rs", "a"];
        assert_eq!(nearest(wanted, names), expected, "{wanted}");
    }

    #[test]
    fn a_slip_of_the_keys_is_forgiven() {
        check("note.md", Some("notes.md"));
        check("ntoes.md", Some("notes.md"));
        check("src/lib.r", Some("src/lib.rs"));
        check("Readme.md", Some("README.md"));
    }

    #[test]
    fn a_file_in_another_folder_is_found_by_its_name() {
        check("lib.rs", Some("src/lib.rs"));
        check("ib.rs", None);
    }

    #[test]
    fn nothing_is_guessed() {
        check("plan.txt", None);
        check("b", None);
        check("", None);
        check(&"x".repeat(5000), None);
    }
}
