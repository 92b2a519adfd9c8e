//! Source files don't import each other in circles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::source::{File, files};

/// Path of a module in the crate.
type Module = Vec<String>;

fn module(file: &File) -> Module {
    let path = file.path["src/".len()..].trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').map(str::to_owned).collect()
}

/// Returns the code without tests, comments and strings.
fn plain(file: &File) -> String {
    static TEXT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"(?s)//[^\n]*|'(?:\\.|[^\\'\n])'|"(?:\\.|[^"\\])*""#).unwrap()
    });
    TEXT.replace_all(file.code(), "").into_owned()
}

/// Returns the paths of an import, one per leaf of its tree.
fn leaves(tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else {
        return vec![tree.trim().to_owned()];
    };
    let inner = &rest[..rest.rfind('}').unwrap_or(rest.len())];
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in inner.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(c);
        }
    }
    parts
        .iter()
        .filter(|part| !part.trim().is_empty())
        .flat_map(|part| leaves(&format!("{}{}", stem.trim(), part.trim())))
        .collect()
}

/// Resolves a path to one of the known modules. `None` for external paths and the module itself.
fn target(here: &Module, path: &str, known: &BTreeSet<Module>) -> Option<Module> {
    let mut base = here.clone();
    let mut is_absolute = false;
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\w+").unwrap());
    for word in path.split("::").map(str::trim) {
        match WORD.find(word)?.as_str() {
            "crate" => {
                base.clear();
                is_absolute = true;
            }
            "self" => is_absolute = true,
            "super" => {
                base.pop();
                is_absolute = true;
            }
            name if is_absolute => base.push(name.to_owned()),
            _ => return None,
        }
    }
    while !base.is_empty() && !known.contains(&base) {
        base.pop();
    }
    (!base.is_empty() && base != *here).then_some(base)
}

fn uses(file: &File, known: &BTreeSet<Module>) -> BTreeSet<Module> {
    let (here, code) = (module(file), plain(file));
    static IMPORTS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?s)\buse\s+((?:crate|super|self)\b[^;]*);").unwrap());
    static INLINE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b(?:crate|super)(?:::\w+)+").unwrap());
    let mut paths: Vec<String> = IMPORTS
        .captures_iter(&code)
        .flat_map(|found| leaves(&found[1]))
        .collect();
    let rest = IMPORTS.replace_all(&code, "");
    paths.extend(INLINE.find_iter(&rest).map(|path| path.as_str().to_owned()));
    let targets = paths.iter().filter_map(|path| target(&here, path, known));
    targets.collect()
}

/// Returns all modules reachable from `from`. Contains `from` only if it is part of a circle.
fn reach(from: &Module, graph: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut found, mut next) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = next.pop() {
        for used in graph.get(&module).into_iter().flatten() {
            if found.insert(used.clone()) {
                next.push(used.clone());
            }
        }
    }
    found
}

/// Returns the sorted module names of each circle.
fn circles(files: &[File]) -> BTreeSet<String> {
    let known: BTreeSet<Module> = files.iter().map(module).collect();
    let graph: BTreeMap<Module, BTreeSet<Module>> = files
        .iter()
        .map(|file| (module(file), uses(file, &known)))
        .collect();
    let reached: BTreeMap<&Module, BTreeSet<Module>> = graph
        .keys()
        .map(|module| (module, reach(module, &graph)))
        .collect();
    let circle = |module: &&Module| {
        let own = &reached[*module];
        let others = own.iter().filter(|other| reached[*other].contains(*module));
        let names: Vec<String> = others.map(|other| other.join("::")).collect();
        names.join(" ")
    };
    reached
        .keys()
        .filter(|module| reached[**module].contains(**module))
        .map(circle)
        .collect()
}

#[test]
fn the_files_of_no_floor_import_each_other_in_circles() {
    let mut files = files("src", ".rs");
    files.retain(|file| !file.is_test() && file.floor().is_some());
    assert_eq!(
        circles(&files),
        BTreeSet::new(),
        "files import each other in one direction"
    );
}

#[test]
fn a_circle_of_imports_is_found() {
    let file = |path: &str, text: &str| File {
        path: format!("src/{path}.rs"),
        text: text.to_owned(),
    };
    let files = [
        file("a/mod", "mod b; mod c; use self::b::B;"),
        file("a/b", "use super::{c::{C, D}, e};\n// use super::d::X;"),
        file("a/c", "fn f() { super::d::g(\"crate::a::b::h\") }"),
        file("a/d", "use crate::a::b;"),
        file("a/e", "use crate::a::f::Type;"),
        file("g", "use self::h::Part;"),
        file("g/h", "use super::Whole;"),
        file(
            "a/f",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::super::e;\n}",
        ),
    ];
    assert_eq!(
        circles(&files),
        BTreeSet::from(["a::b a::c a::d".to_owned(), "g g::h".to_owned()])
    );
}
