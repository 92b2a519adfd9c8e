//! Finds the modules of the workspace that a Python environment uses (`pip install -e`), so that the
//! commands in a copy import the copy's.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::host::file::read_regular_text;

const PYTHON: &str = "bin/python";
/// Directory of the files that extend an environment's module path.
const SITE_PACKAGES: &str = "site-packages";
const MAX_PATH_FILE: u64 = 64 << 10;
/// Start of the line with the package locations in a module finder.
const MAPPING: &str = "MAPPING";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EditableModules {
    /// Directories from which Python can import them, relative to the workspace.
    pub(super) dirs: Vec<PathBuf>,
    /// Whether there are modules that no directory on the module path provides.
    pub(super) has_others: bool,
}

/// Finds none in an environment whose Python is missing or of another version: no program would
/// import them.
pub(super) fn editable_modules(environment: &Path, workspace: &Path) -> EditableModules {
    let real = workspace.canonicalize();
    let real = real.iter().map(PathBuf::as_path);
    let tops: Vec<&Path> = real.chain([workspace]).collect();
    let python = environment.join(PYTHON);
    let program = python.canonicalize().ok();
    if program.is_none() && python.is_symlink() {
        return EditableModules::default();
    }
    let program = program.as_deref().and_then(Path::file_name);
    let version = program.filter(|name| name.as_bytes().contains(&b'.'));
    let versions = std::fs::read_dir(environment.join("lib"));
    let versions = versions.into_iter().flatten().flatten();
    let versions = versions.filter(|dir| version.is_none_or(|name| dir.file_name() == name));
    let packages = versions.map(|version| version.path().join(SITE_PACKAGES));
    let entries = packages.flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());

    let mut modules = EditableModules::default();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().as_bytes();
        // Old versions of setuptools write `.egg-link`. New ones write a finder if a path file cannot
        // describe the layout.
        let is_path_file = name.ends_with(b".pth") || name.ends_with(b".egg-link");
        let is_finder = name.starts_with(b"__editable__") && name.ends_with(b".py");
        if is_path_file || is_finder {
            let text = read_regular_text(&path, MAX_PATH_FILE).unwrap_or_default();
            text.lines()
                .for_each(|line| modules.add_line(line.trim(), is_finder, &tops));
        }
    }
    modules.dirs.sort();
    modules.dirs.dedup();
    modules
}

impl EditableModules {
    fn add_line(&mut self, line: &str, is_finder: bool, tops: &[&Path]) {
        if line.starts_with('#') || !tops.iter().any(|top| names_dir(line, top)) {
            return;
        }
        let inside = |path: &str| {
            let mut found = tops.iter().map(|top| Path::new(path).strip_prefix(top));
            found.find_map(Result::ok).map(Path::to_owned)
        };
        if is_finder && line.starts_with(MAPPING) {
            let words: Vec<&str> = line.split(['\'', '"']).collect();
            for (at, path) in words.iter().enumerate() {
                let Some(path) = inside(path) else { continue };
                let is_value = at >= 2 && words[at - 1].trim() == ":";
                let dir = is_value.then(|| dir_of_module(&path, words[at - 2]));
                match dir.flatten() {
                    Some(dir) => self.dirs.push(dir),
                    None => self.has_others = true,
                }
            }
            return;
        }
        match inside(line).filter(|_| !is_finder) {
            Some(dir) => self.dirs.push(dir),
            None => self.has_others = true,
        }
    }
}

/// Returns the directory from which a module at a path can be imported under its name.
fn dir_of_module(path: &Path, name: &str) -> Option<PathBuf> {
    let path = match path.extension() {
        Some(extension) if extension == "py" => path.with_extension(""),
        _ => path.to_owned(),
    };
    let parts: PathBuf = name.split('.').collect();
    let depth = parts.components().count();
    let above = path.ancestors().nth(depth).map(Path::to_owned);
    above.filter(|_| path.ends_with(&parts))
}

/// Returns whether a text contains the path of a directory, or of a file in it.
fn names_dir(text: &str, dir: &Path) -> bool {
    let Some(dir) = dir.to_str().filter(|dir| !dir.is_empty()) else {
        return false;
    };
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(['/', '\n', '\r', '\'', '"']);
    let mut found = text.match_indices(dir);
    found.any(|(at, _)| is_end(&text[at + dir.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bug: Python imported them in a copy and not in an overlay.
    #[test]
    fn modules_of_another_python_are_not_found() {
        for (program, expected) in [
            (None, true),
            (Some("python3.11"), true),
            (Some("python3"), true),
            (Some("python3.9"), false),
            (Some("missing/python3.11"), false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let packages = dir.path().join("lib/python3.11/site-packages");
            std::fs::create_dir_all(&packages).unwrap();
            std::fs::write(packages.join("calc.pth"), "/home/me/calc/src\n").unwrap();
            std::fs::create_dir(dir.path().join("bin")).unwrap();
            for name in ["python3.11", "python3.9", "python3"] {
                std::fs::write(dir.path().join(name), "").unwrap();
            }
            if let Some(program) = program {
                let link = dir.path().join(PYTHON);
                std::os::unix::fs::symlink(dir.path().join(program), link).unwrap();
            }
            let modules = editable_modules(dir.path(), Path::new("/home/me/calc"));
            assert_eq!(!modules.dirs.is_empty(), expected, "{program:?}");
        }
    }

    #[test]
    fn an_editable_install_of_the_workspace_is_found_in_each_form() {
        let check = |name: &str, text: &str, dirs: &[&str], has_others: bool| {
            let dir = tempfile::tempdir().unwrap();
            let packages = dir.path().join("lib/python3.11/site-packages");
            std::fs::create_dir_all(&packages).unwrap();
            std::fs::write(packages.join(name), text).unwrap();
            let actual = editable_modules(dir.path(), Path::new("/home/me/calc"));
            let expected = EditableModules {
                dirs: dirs.iter().map(PathBuf::from).collect(),
                has_others,
            };
            assert_eq!(actual, expected, "{name}: {text}");
        };
        for (text, dir) in [
            ("/home/me/calc", ""),
            ("/home/me/calc/src\n", "src"),
            ("# a\r\n/home/me/calc\r\n", ""),
            ("/home/me/calc/src\n.", "src"),
        ] {
            check("__editable__.calc-0.1.pth", text, &[dir], false);
            check("calc.egg-link", text, &[dir], false);
            check("calc.txt", text, &[], false);
        }
        let imports = "import sys; sys.path.insert(0, '/home/me/calc/src')\n";
        check("a.pth", imports, &[], true);
        check("a.pth", "/home/me/calculator\nimport calc\n", &[], false);
        check("a.pth", "", &[], false);

        let finder = "__editable___calc_0_1_finder.py";
        let mapping = "MAPPING: dict[str, str] = {'calc': '/home/me/calc/src/calc', 'a.b': '/home/me/calc/lib/a/b', 'one': '/home/me/calc/one.py'}\n";
        check(finder, mapping, &["", "lib", "src"], false);
        check(
            finder,
            "MAPPING = {'calc': '/home/me/calc/code'}\n",
            &[],
            true,
        );
        let namespaces = "MAPPING = {}\nNAMESPACES = {'ns': ['/home/me/calc/src/ns']}\n";
        check(finder, namespaces, &[], true);
        check("calc.py", mapping, &[], false);
    }
}
