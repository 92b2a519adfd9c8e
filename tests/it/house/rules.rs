//! Rules for the source code that the compiler does not check: dependencies between modules,
//! required content of files, and where each crate is used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use regex::Regex;

use crate::support::source::{File, files, root};

/// Limit for a source file without its inline tests.
const MAX_LINES: usize = 700;
/// Crates, and the only paths below `src/` that use them.
const HOMES: [(&str, &[&str]); 15] = [
    ("gix", &["git"]),
    ("gix_pack", &["git"]),
    ("reqwest", &["host/"]),
    ("rustls", &["host/http.rs"]),
    ("hyper", &["host/serve.rs"]),
    ("maud", &["ui/html"]),
    ("dom_smoothie", &["host/web"]),
    ("html5ever", &["host/web"]),
    ("comrak", &["text/markdown"]),
    ("similar", &["text/diff"]),
    ("ratatui", &["ui"]),
    ("crossterm", &["ui"]),
    ("dialoguer", &["ui"]),
    ("tiktoken_rs", &["build/vocabulary.rs"]),
    ("clap", &["cli"]),
];

/// Required sections of a page about a format, in this order.
const SECTIONS: [&str; 7] = [
    "Where",
    "Example",
    "Layout",
    "Rules",
    "Versions",
    "Written by",
    "Read by",
];

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns all matches of the pattern's first group.
fn all<'a>(pattern: &str, text: &'a str) -> Vec<&'a str> {
    // Cached, because compiling a pattern takes longer than a search in a file.
    static PATTERNS: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let known = |patterns: &mut BTreeMap<String, Regex>| {
        let made = || Regex::new(pattern).unwrap();
        patterns
            .entry(pattern.to_owned())
            .or_insert_with(made)
            .clone()
    };
    let pattern = known(&mut PATTERNS.lock().unwrap());
    pattern
        .captures_iter(text)
        .map(|found| found.get(1).unwrap().as_str())
        .collect()
}

fn commands() -> Vec<File> {
    let is_command = |file: &File| {
        file.text.contains("pub(super) struct Args") && file.path.matches('/').count() == 2
    };
    files("src/cli", ".rs")
        .into_iter()
        .filter(is_command)
        .collect()
}

fn command(file: &File) -> String {
    file.path
        .trim_start_matches("src/cli/")
        .trim_end_matches(".rs")
        .trim_end_matches("/mod")
        .replace('_', "-")
}

#[track_caller]
fn none(broken: &[String], rule: &str) {
    assert!(broken.is_empty(), "{rule}:\n{}", broken.join("\n"));
}

#[test]
fn a_module_uses_only_those_declared_above_it() {
    let lib = text("src/lib.rs");
    let floors = all(r"(?m)^pub mod (\w+);", &lib);
    assert_eq!(
        floors.join(" "),
        "text host git config model plan session change workspace project query workflow ui cli"
    );
    let height = |name: &str| floors.iter().position(|floor| *floor == name);
    let mut broken = Vec::new();
    let mut uses = 0;
    for file in files("src", ".rs") {
        let Some(own) = file.floor() else { continue };
        let own = height(own).unwrap_or_else(|| panic!("{} is on no floor", file.path));
        for used in all(r"\bcrate::(\w+)", &file.text) {
            uses += 1;
            if height(used).is_none_or(|used| used > own) {
                broken.push(format!("{} uses crate::{used}", file.path));
            }
        }
        if file.text.contains("use crate::{") {
            broken.push(format!(
                "{}: write one `use crate::<module>` for each module",
                file.path
            ));
        }
    }
    assert!(uses > 500, "the pattern finds {uses} uses");
    none(
        &broken,
        "a module uses only modules that lib.rs declares above it",
    );
}

#[test]
fn a_query_only_reads() {
    let writing = Regex::new(
        r"Transaction|dyn User|\.lock(_session)?\(|refs::(move|delete|create)|save_draft|write_atomic",
    );
    let writing = writing.unwrap();
    let queries = files("src/query", ".rs");
    assert!(!queries.is_empty());
    let broken: Vec<String> = queries
        .into_iter()
        .filter_map(|file| {
            let found = writing.find(file.code())?.as_str().to_owned();
            Some(format!("{} has `{found}`", file.path))
        })
        .collect();
    none(
        &broken,
        "a query takes no lock, writes nothing and asks nobody",
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    let all = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"));
    let broken: Vec<String> = all
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.path)
        .collect();
    none(&broken, "a file starts with a `//!` line");
}

#[test]
fn files_are_short_enough_to_be_read() {
    let long = |file: &File| {
        let lines = file.code().lines().count();
        (lines > MAX_LINES).then(|| format!("{}: {lines} lines", file.path))
    };
    let broken: Vec<String> = files("src", ".rs")
        .iter()
        .filter(|file| !file.is_test())
        .filter_map(long)
        .collect();
    none(
        &broken,
        &format!("a file has at most {MAX_LINES} lines without its tests; split it by idea"),
    );
}

#[test]
fn a_type_has_a_name_of_its_own() {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files("src", ".rs").iter().filter(|file| !file.is_test()) {
        let declared = r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) ([A-Z]\w*)";
        for name in all(declared, file.code()) {
            homes
                .entry(name.to_owned())
                .or_default()
                .push(file.path.clone());
        }
    }
    // Each command has its own `Args`, and each `impl` of a trait its own associated types.
    let of_a_place = [
        "Args", "Error", "Item", "Output", "Target", "Owned", "Err", "Value",
    ];

    let broken: Vec<String> = homes
        .into_iter()
        .filter(|(name, files)| files.len() > 1 && !of_a_place.contains(&name.as_str()))
        .map(|(name, files)| format!("{name}: {}", files.join(", ")))
        .collect();
    none(&broken, "a name means one thing; say which one it is");
}

#[test]
fn a_heavy_crate_has_one_home() {
    let mut broken = Vec::new();
    for (name, homes) in HOMES {
        let pattern = Regex::new(&format!(r"(?m)(\b{name}::|^use {name};)")).unwrap();
        let users: Vec<File> = files("src", ".rs")
            .into_iter()
            .filter(|file| pattern.is_match(&file.text))
            .collect();
        if users.is_empty() {
            broken.push(format!("nobody uses {name}"));
        }
        let away = |file: &&File| {
            !homes
                .iter()
                .any(|home| file.path["src/".len()..].starts_with(home))
        };
        broken.extend(users.iter().filter(away).map(|file| {
            format!(
                "{} uses {name}, whose home is {}",
                file.path,
                homes.join(", ")
            )
        }));
    }
    none(&broken, "a crate is used at home only");
}

#[test]
fn files_are_read_with_a_limit() {
    let whole = Regex::new(r"\bfs::(read|read_to_string)\(").unwrap();
    let broken: Vec<String> = files("src", ".rs")
        .iter()
        .filter(|file| !file.is_test())
        .flat_map(|file| {
            let lines = file.code().lines().map(str::trim);
            lines
                // Kernel files are short, and no one else can replace them.
                .filter(|line| {
                    whole.is_match(line)
                        && !line.contains("/proc/")
                        && !file.path.ends_with("supervisor/process_tree.rs")
                })
                .map(|line| format!("{}: {line}", file.path))
                .collect::<Vec<_>>()
        })
        .collect();
    none(
        &broken,
        "whatever others could have written is read by `host::file::read_regular`",
    );
}

#[test]
fn every_dependency_is_used_and_has_its_reason_written_down() {
    let manifest = text("Cargo.toml");
    let sources: String = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"))
        .map(|file| file.text)
        .collect();
    let decisions: String = files("docs/decisions", ".md")
        .into_iter()
        .map(|file| file.text)
        .collect();
    let mut broken = Vec::new();
    let tables = Regex::new(
        r"(?m)^\[(?:target\..*\.)?(?:dev-|build-)?dependencies\]\n((?:(?:[^\[\n].*)?\n)*)",
    )
    .unwrap();
    let names: BTreeSet<&str> = tables
        .captures_iter(&manifest)
        .flat_map(|table| all(r"(?m)^([a-z0-9_-]+) = ", table.get(1).unwrap().as_str()))
        .collect();
    assert!(names.len() > 30, "{names:?}");
    // The project itself, a dependency for features that only tests need.
    for name in names.into_iter().filter(|name| *name != "teddy-git") {
        let path = name.replace('-', "_");
        if !Regex::new(&format!(r"\b{path}(::|!)"))
            .unwrap()
            .is_match(&sources)
        {
            broken.push(format!("{name} is used nowhere"));
        }
        if !decisions.contains(&format!("`{name}`")) {
            broken.push(format!("{name} is in no page of docs/decisions"));
        }
    }
    none(
        &broken,
        "a dependency is used, and a decision says why it is there",
    );
}

#[test]
fn nothing_is_left_undone() {
    let marks = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("#[ign", "ore"),
    ];
    let mut broken = Vec::new();
    for file in ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"))
    {
        broken.extend(
            marks
                .iter()
                .filter(|mark| file.text.contains(**mark))
                .map(|mark| format!("{} has {mark}", file.path)),
        );
    }
    for file in files("src", ".rs").iter().filter(|file| !file.is_test()) {
        if file.code().contains(concat!(".unw", "rap()")) {
            broken.push(format!(
                "{} unwraps; say with `expect` why it holds",
                file.path
            ));
        }
    }
    none(&broken, "nothing is left to be done");
}

#[test]
fn every_command_has_an_end_to_end_test() {
    let tests: String = files("tests", ".rs")
        .into_iter()
        .map(|file| file.text)
        .collect();
    let mut broken = Vec::new();
    for file in commands().iter() {
        let command = command(file);
        if !tests.contains(&format!("\"{command}\"")) {
            broken.push(format!("no test runs `teddy {command}`"));
        }
        if !file.text.contains("after_help") {
            broken.push(format!("the help of `teddy {command}` has no example"));
        }
    }
    none(&broken, "a command is tried and has an example");
}

#[test]
fn every_command_is_in_the_reference_and_the_readme_links_it() {
    let (readme, reference) = (text("README.md"), text("docs/cli.md"));
    let mut broken = Vec::new();
    if !readme.contains("](docs/cli.md)") {
        broken.push("README.md does not link docs/cli.md".to_owned());
    }
    for file in commands().iter() {
        let command = command(file);
        let mentioned = Regex::new(&format!(r"`(teddy )?{command}\b")).unwrap();
        if !mentioned.is_match(&reference) {
            broken.push(format!("docs/cli.md does not tell of `{command}`"));
        }
    }
    none(&broken, "a command is documented");
}

#[test]
fn the_page_of_a_format_has_its_sections_and_numbered_rules() {
    let mut broken = Vec::new();
    for file in files("docs/formats", ".md") {
        // Search from the last section on, because an example can contain headings.
        let mut at = 0;
        for section in SECTIONS {
            match file.text[at..].find(&format!("\n## {section}\n")) {
                Some(found) => at += found + 1,
                None => broken.push(format!(
                    "{} has no section `{section}`, or not in its place",
                    file.path
                )),
            }
        }
        let mut numbers: Vec<u32> = all(r"(?m)^(?:- \*\*[A-Z]+|)(\d+)(?:\*\*|\. \*\*)", &file.text)
            .iter()
            .map(|n| n.parse().unwrap())
            .collect();
        numbers.sort_unstable();
        if numbers.is_empty() || !numbers.iter().copied().eq(1..=numbers.len() as u32) {
            broken.push(format!(
                "{}: its rules are not numbered from 1 without a gap: {numbers:?}",
                file.path
            ));
        }
    }
    none(&broken, "the page of a format is complete");
}

#[test]
fn every_rule_of_a_format_has_a_test_named_after_it() {
    let sources: String = ["src", "tests"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"))
        .map(|file| file.text)
        .collect();
    let tests: BTreeSet<&str> = all(r"fn ([a-z]+\d+)_\w+\(", &sources).into_iter().collect();
    let mut broken = Vec::new();
    for file in files("docs/formats", ".md") {
        for rule in all(r"(?m)^- \*\*([A-Z]+\d+)\*\*", &file.text) {
            if !tests.contains(rule.to_lowercase().as_str()) {
                broken.push(format!("{} {rule}", file.path));
            }
        }
    }
    none(&broken, "a rule has a test");
}

#[test]
fn decisions_have_numbers_of_their_own_and_fit_on_a_page() {
    let mut broken = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files("docs/decisions", ".md") {
        let name = file.path.rsplit('/').next().unwrap();
        let number = &name[..4];
        if !seen.insert(number.to_owned()) {
            broken.push(format!("{name}: the number is taken"));
        }
        if !Regex::new(&format!("^# {number}:? "))
            .unwrap()
            .is_match(&file.text)
        {
            broken.push(format!("{name} does not start with `# {number}`"));
        }
        if file.text.lines().count() > 60 {
            broken.push(format!("{name} is longer than a page"));
        }
    }
    none(&broken, "decisions are numbered pages");
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut broken = Vec::new();
    let mut pages = files("docs", ".md");
    pages.push(File {
        path: "README.md".to_owned(),
        text: text("README.md"),
    });
    for page in pages {
        let folder = root().join(&page.path);
        for link in all(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", &without_code(&page.text)) {
            if !link.contains("://") && !folder.parent().unwrap().join(link).exists() {
                broken.push(format!("{}: {link}", page.path));
            }
        }
    }
    none(&broken, "a link leads to a file");
}

/// Returns a page without code blocks and code spans.
fn without_code(text: &str) -> String {
    let mut fence = None;
    let mut rest = String::new();
    for line in text.lines() {
        let run = line.chars().take_while(|c| *c == '`').count();
        match fence {
            Some(length) if run >= length => fence = None,
            Some(_) => {}
            None if run >= 3 => fence = Some(run),
            None => {
                rest.push_str(line);
                rest.push('\n');
            }
        }
    }
    Regex::new("`[^`\n]*`")
        .unwrap()
        .replace_all(&rest, "")
        .into_owned()
}

#[test]
fn modules_that_root_changes_are_run_both_ways() {
    let script = text(".ci/run");
    let mut listed = BTreeSet::new();
    for (target, names) in [
        ("it", r"(?s)cargo test --test it -- (.*?)\n  cargo"),
        ("worlds", r"cargo test --test worlds -- (.*)"),
    ] {
        let names = all(names, &script)[0].replace("\\\n", " ");
        let paths = names.split_whitespace().map(|name| {
            let path = name.trim_end_matches("::").replace("::", "/");
            format!("tests/{target}/{path}.rs")
        });
        listed.extend(paths);
    }

    let marked: BTreeSet<String> = files("tests", ".rs")
        .into_iter()
        .filter(|file| {
            let mut lines = file.text.lines();
            lines.any(|line| line == "//! CI also runs this module as root.")
        })
        .map(|file| file.path)
        .collect();
    assert_eq!(listed, marked);
    // CI runs both targets completely as an ordinary user.
    for whole in ["\ncargo test\n", "\ncargo test --test worlds\n"] {
        assert!(script.contains(whole), "{whole} is not in .ci/run");
    }
}

/// No machine that runs the tests compiles what is for other systems.
#[test]
fn what_other_systems_compile_has_the_names_of_linux() {
    let item = r"\n(?:[ \t]*(?:#\[|//)[^\n]*\n)*[ \t]*(?:pub(?:\([^)]*\))? )?(?:const |unsafe )*(?:fn|const|struct|mod|static|type) (\w+)";
    let names = |condition: &str, text: &str| -> BTreeSet<String> {
        let pattern = format!("{}{item}", regex::escape(condition));
        all(&pattern, text).into_iter().map(str::to_owned).collect()
    };
    let mut broken = Vec::new();
    let mut compared = 0;
    for file in files("src", ".rs") {
        let linux = names("#[cfg(target_os = \"linux\")]", &file.text);
        let others = names("#[cfg(not(target_os = \"linux\"))]", &file.text);
        compared += others.len();
        let missing = others.difference(&linux);
        broken.extend(missing.map(|name| format!("{}: {name}", file.path)));
    }
    assert!(compared > 10, "the pattern finds {compared} items");
    none(
        &broken,
        "a replacement on other systems has the name that it replaces",
    );
}
