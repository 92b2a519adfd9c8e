//! Suggests the name that the user probably meant.

// Bounds the time, which is quadratic in the length.
const MAX_LENGTH: usize = 400;

/// Returns the most similar name. `None` if none is likely: a typo, another case, or the same file
/// name in another directory.
pub fn nearest<'n>(input: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let input = input.to_lowercase();
    let most = input.chars().count().min(MAX_LENGTH) / 4 + 1;
    names
        .into_iter()
        .filter_map(|name| Some((distance(&input, &name.to_lowercase(), most)?, name)))
        .min_by_key(|(distance, name)| (*distance, name.len(), *name))
        .map(|(_, name)| name)
}

/// `None` if the names are too different.
fn distance(input: &str, name: &str, most: usize) -> Option<usize> {
    let is_elsewhere = name
        .strip_suffix(input)
        .is_some_and(|dir| dir.ends_with('/'));
    if is_elsewhere {
        return Some(1);
    }

    let [input, name] = [input, name].map(|name| name.chars().collect::<Vec<_>>());
    let is_comparable =
        input.len().abs_diff(name.len()) <= most && input.len().max(name.len()) <= MAX_LENGTH;
    let count = is_comparable.then(|| edits(&input, &name))?;
    (count <= most && count < input.len()).then_some(count)
}

/// Returns the edit distance, with swaps of adjacent letters.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (at, letter) in from.iter().enumerate() {
        let mut row = vec![at + 1];
        for (other, target) in to.iter().enumerate() {
            let above = &rows[at];
            let changed = above[other] + usize::from(letter != target);
            let mut least = changed.min(above[other + 1] + 1).min(row[other] + 1);
            let is_swap =
                at > 0 && other > 0 && from[at - 1] == *target && to[other - 1] == *letter;

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
    fn check(input: &str, expected: Option<&str>) {
        let names = ["README.md", "notes.md", "src/lib.rs", "src/main.rs", "a"];
        assert_eq!(nearest(input, names), expected, "{input}");
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
