//! Rules for the language of the project: phrases and names that a newcomer would stumble over, and
//! how much of a file is documentation.
//!
//! A hit is a reason to rewrite the sentence or to name the thing, not to look for a synonym. The
//! limits are rates because some hits are right where they are.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::support::source::{File, files, root};

/// Hits per 1,000 lines of prose.
const MAX_PHRASES: f64 = 5.0;
/// Definitions per 1,000 lines of source.
const MAX_NAMES: f64 = 2.0;
/// Doc comments in percent of all lines.
const MAX_DOCS: f64 = 8.0;

/// Phrases that name no actor or use a word that the field does not use. The second pattern is the
/// exception to the first, matched at the same place.
const PHRASES: [(&str, &str); 18] = [
    (r"\b[Ww]ho(?:so)?ever\b|\bwhichever\b", ""),
    (r"\b(?:come|comes|came|become|becomes|became) of\b", ""),
    (
        r"\b(?:lies|lay|laid|lain|lie) (?:ready|there|beside|below|behind|in|at|where|on|open|around)\b",
        "",
    ),
    (r"\b(?:is|are|be|been|was|were) had\b", ""),
    (r"\b(?:is|are) none\b", r"there (?:is|are) none\b|none of"),
    (r"\brooms?\b", ""),
    (
        r"\b(?:mend|mends|mended|mending|ailing|heal|heals|healed|healing)\b",
        "",
    ),
    (
        r"\b(?:put|puts|set|sets|putting) (?:right|away|aside)\b",
        "",
    ),
    (
        r"\bin words\b|\b(?:its|their|whose|the user's|the agent's) words\b",
        "",
    ),
    (r"\b(?:bring|brings|bringing|brought)\b", ""),
    (
        r"\b(?:go|goes|going|went|gone) on\b",
        r"(?:go|goes|going|went|gone) on (?:to|the|a)\b",
    ),
    (r"\b(?:hear|hears|heard) of\b|\btold apart\b", ""),
    (
        r"\b(?:stand|stands|standing|stood) \w+",
        r"(?:stand|stands|standing|stood) (?:alone|out|for|up|in for)\b",
    ),
    (r"\bshall\b", ""),
    (r"\b(?:let go|lets go|has a say|have a say)\b", ""),
    (r"\b[Ss]trangers?\b", ""),
    (r"\b(?:[Nn]obody|[Aa]nybody|[Ss]omebody|[Ee]verybody)\b", ""),
    (
        r"\b(?:that|which|what|it|they|file|directory|one|who) (?:is|are|was|were) (?:not |still |already )?(?:there|here)\b",
        "",
    ),
];

/// Words that say nothing as the name of a variable, function, field, type or module.
const VOCABULARY: &str = "ailing aimed apart arriving aside asking awaited begun behind below beside besides \
    beyond bring bringing brought came carried chance closed comes content course deed deeds desk displaced done \
    fetch_back fill fitting former found freed gather give_back given glance go goes gone ground grown hands heal \
    healed hear held hinted hold join kept known laid late lay leave left leftover let_go lies likely look looked \
    looks made makes making manner marked meant mend mended missed moment motion named nearby ours outside overall \
    past person place places put_away quiet reached read_on ready remark remembered rest right room rounds run_on \
    said say seen settle settled sheet shown shut sound spare spent spread standing still stray strays sweep taken \
    tell theirs there told torn touched twin twins untold view wanted was way what whence whole whose wish wished \
    within words worth";

fn is_product(file: &File) -> bool {
    !file.is_test()
}

/// Returns the prose of a source file: comments, and strings of several words.
fn prose_of_source(text: &str) -> Vec<&str> {
    static STRING: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""((?:\\.|[^"\\])+)""#).unwrap());
    let mut prose = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("//") {
            prose.push(comment.trim_start_matches(['/', '!']).trim());
            continue;
        }
        let strings = STRING.captures_iter(line);
        prose.extend(
            strings
                .map(|string| string.get(1).unwrap().as_str())
                .filter(|string| string.trim().contains(' ')),
        );
    }
    prose
}

/// Returns the lines of a page that are not code.
fn prose_of_page(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut prose = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
        } else if !is_code && !line.is_empty() {
            prose.push(line);
        }
    }
    prose
}

/// Returns the phrases in one line of prose.
fn phrases(line: &str) -> Vec<String> {
    static PATTERNS: LazyLock<Vec<(Regex, Option<Regex>)>> = LazyLock::new(|| {
        let regex = |pattern: &str| Regex::new(pattern).unwrap();
        PHRASES
            .iter()
            .map(|(phrase, exception)| {
                let exception = (!exception.is_empty()).then(|| regex(exception));
                (regex(phrase), exception)
            })
            .collect()
    });
    let mut hits = Vec::new();
    for (phrase, exception) in PATTERNS.iter() {
        let excepted: Vec<_> = exception
            .iter()
            .flat_map(|exception| exception.find_iter(line))
            .collect();
        for hit in phrase.find_iter(line) {
            let overlaps =
                |other: &regex::Match<'_>| other.start() < hit.end() && hit.start() < other.end();
            if !excepted.iter().any(overlaps) {
                hits.push(hit.as_str().to_owned());
            }
        }
    }
    hits
}

#[test]
fn the_prose_of_the_project_is_plain_english() {
    let sources = files("src", ".rs");
    let pages = files("docs", ".md");
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let lines: Vec<&str> = sources
        .iter()
        .flat_map(|file| prose_of_source(&file.text))
        .chain(pages.iter().flat_map(|page| prose_of_page(&page.text)))
        .chain(prose_of_page(&readme))
        .collect();
    let hits: Vec<String> = lines
        .iter()
        .flat_map(|line| {
            let hits = phrases(line);
            hits.into_iter().map(move |hit| format!("{hit}: {line}"))
        })
        .collect();
    let rate = 1000.0 * hits.len() as f64 / lines.len() as f64;
    assert!(
        rate <= MAX_PHRASES,
        "{rate:.1} phrases in 1,000 lines of prose:\n{}",
        hits.join("\n")
    );
}

#[test]
fn phrases_are_found_and_exceptions_left_out() {
    let count = |line: &str| phrases(line).len();
    assert_eq!(count("What became of it, whoever brought it."), 3);
    assert_eq!(count("The turn stands for nothing; there are none."), 0);
    assert_eq!(count("It goes on to the next file and goes on."), 1);
}

#[test]
fn names_are_words_of_the_field() {
    static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"\bfn (\w+)|\b(?:struct|enum|trait|mod) (\w+)|^\s*(?:pub(?:\([^)]*\))? )?(\w+): [A-Z&(\[]|\blet (?:mut )?(\w+)\b",
        )
        .unwrap()
    });
    let vocabulary: BTreeSet<&str> = VOCABULARY.split_whitespace().collect();
    let (mut hits, mut lines) = (Vec::new(), 0);
    for file in files("src", ".rs") {
        for (number, line) in file.text.lines().enumerate() {
            lines += 1;
            if line.trim_start().starts_with("//") {
                continue;
            }
            for definition in DEFINITION.captures_iter(line) {
                let name = definition.iter().skip(1).flatten().next().unwrap().as_str();
                if vocabulary.contains(name.to_lowercase().as_str()) {
                    hits.push(format!("{}:{}: {name}", file.path, number + 1));
                }
            }
        }
    }
    let rate = 1000.0 * hits.len() as f64 / f64::from(lines);
    assert!(
        rate <= MAX_NAMES,
        "{rate:.1} names in 1,000 lines say nothing:\n{}",
        hits.join("\n")
    );
}

#[test]
fn parameters_have_names() {
    static FUNCTION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\bfn (\w+)(?:<[^{;]*?>)?\(").unwrap());
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:^|,)\s*(?:mut\s+)?&?(?:\([^()]*\)|\[[^\[\]]*\])\s*:").unwrap()
    });
    let mut hits = Vec::new();
    for file in files("src", ".rs").iter().filter(|file| is_product(file)) {
        let code = file.code();
        for function in FUNCTION.captures_iter(code) {
            let start = function.get(0).unwrap().end();
            let mut depth = 1;
            let length = code[start..]
                .find(|c| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    depth == 0
                })
                .unwrap_or(0);
            if PATTERN.is_match(&code[start..start + length]) {
                hits.push(format!("{}: {}", file.path, &function[1]));
            }
        }
    }
    assert!(
        hits.is_empty(),
        "{} functions have a parameter that is a tuple or an array without a name:\n{}",
        hits.len(),
        hits.join("\n")
    );
}

#[test]
fn documentation_says_what_names_do_not() {
    let (mut docs, mut lines) = (0, 0);
    for file in files("src", ".rs").iter().filter(|file| is_product(file)) {
        for line in file.code().lines() {
            lines += 1;
            let line = line.trim_start();
            docs += usize::from(line.starts_with("///") || line.starts_with("//!"));
        }
        assert!(
            !file.text.contains("/// # Errors"),
            "{}: state an error in the sentence if a caller acts on it",
            file.path
        );
    }
    let share = 100.0 * docs as f64 / lines as f64;
    assert!(
        share <= MAX_DOCS,
        "{share:.1} % of all lines are documentation"
    );
}
