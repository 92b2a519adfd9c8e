//! The published package contains exactly what a build needs, and a build knows its commit.
//!
//! CI also runs this module as root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::source::files;
use crate::support::{Output, TestRepo, skipped};

/// Size limit before compression.
const MOST: u64 = 7 * 1024 * 1024;

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the cargo that runs these tests. `None` if they run without cargo, or as a user who
/// cannot start it.
#[expect(clippy::disallowed_methods, reason = "a test starts cargo itself")]
fn cargo() -> Option<PathBuf> {
    let cargo = teddy::host::env::var_os("CARGO").map(PathBuf::from);
    let starts = |cargo: &PathBuf| {
        let version = std::process::Command::new(cargo).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    let cargo = cargo.filter(starts);
    if cargo.is_none() {
        skipped("these tests were not started by a cargo that this user can start");
    }
    cargo
}

/// Returns the files of the package. `None` without cargo.
#[expect(clippy::disallowed_methods, reason = "a test starts cargo itself")]
fn packaged() -> Option<BTreeSet<String>> {
    let mut command = std::process::Command::new(cargo()?);
    command
        .current_dir(project())
        .args(["package", "--list", "--allow-dirty", "--offline"]);
    let listed = Output::of(&mut command);
    assert_eq!(listed.code, 0, "{listed}");
    Some(listed.stdout.lines().map(str::to_owned).collect())
}

/// Returns the files named by `include_str!` outside of tests.
fn included() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files("src", ".rs") {
        if file.is_test() || file.path.contains("/damage/") {
            continue;
        }
        let folder = Path::new(&file.path).parent().unwrap().to_owned();
        let macros = file.code().split("include_str!(\"").skip(1);
        let also = file.code().split("include_bytes!(\"").skip(1);
        for rest in macros.chain(also) {
            let path = folder.join(rest.split('"').next().unwrap());
            let path = project().join(path).canonicalize().unwrap();
            let root = project().canonicalize().unwrap();
            names.insert(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
    names
}

#[test]
fn the_package_has_what_a_build_needs() {
    let Some(packaged) = packaged() else { return };
    let included = included();
    assert!(included.len() > 15, "{included:?}");
    let sources = files("src", ".rs").into_iter().map(|file| file.path);
    let texts = ["Cargo.toml", "Cargo.lock", "README.md"].map(str::to_owned);
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(str::to_owned);

    let needed = included.into_iter().chain(sources);
    let missing: Vec<String> = needed
        .chain(texts)
        .chain(licences)
        .filter(|name| !packaged.contains(name))
        .collect();
    assert!(missing.is_empty(), "not in the package: {missing:?}");
}

#[test]
fn the_package_has_nothing_else() {
    let Some(packaged) = packaged() else { return };
    let tops: BTreeSet<&str> = packaged
        .iter()
        .map(|name| name.split('/').next().unwrap())
        .collect();
    let expected = [
        ".cargo_vcs_info.json",
        "Cargo.lock",
        "Cargo.toml",
        "Cargo.toml.orig",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "fixtures",
        "prompts",
        "src",
    ];
    // The file with the commit is missing if the sources are not a git checkout.
    let tops = tops.into_iter().chain([expected[0]]);
    assert_eq!(tops.collect::<BTreeSet<_>>(), BTreeSet::from(expected));

    let fixtures = packaged
        .iter()
        .filter(|name| name.starts_with("fixtures/"))
        .all(|name| name.starts_with("fixtures/demo/"));
    assert!(fixtures, "{packaged:?}");
    let size: u64 = packaged
        .iter()
        .filter_map(|name| std::fs::metadata(project().join(name)).ok())
        .map(|file| file.len())
        .sum();
    assert!(size < MOST, "{size} bytes");
}

/// The build script, compiled once to test how it determines the commit.
struct BuildScript {
    /// Contains the program, and the sources for which it runs.
    repo: TestRepo,
}

impl BuildScript {
    /// `None` without a compiler.
    fn new() -> Option<BuildScript> {
        let compiler = cargo()?.with_file_name("rustc");
        let repo = TestRepo::new();
        let source = project().join("src/build/commit.rs");
        let main = format!("#[path = {source:?}]\nmod commit;\nfn main() {{ commit::emit() }}\n");
        std::fs::write(repo.beside("script.rs"), main).unwrap();

        let mut compile = repo.command(compiler.to_str()?);
        compile.args(["--edition=2024", "-Cdebuginfo=0", "-o"]);
        compile.arg(repo.beside("script"));
        compile.arg(repo.beside("script.rs"));
        let compiled = Output::of(&mut compile);
        assert_eq!(compiled.code, 0, "{compiled}");
        Some(BuildScript { repo })
    }

    /// Runs the script for a profile. Returns commit and date.
    fn says(&self, profile: &str, variables: &[(&str, &str)]) -> String {
        self.says_in(&self.repo.path(), profile, variables)
    }

    /// Like [`BuildScript::says`], in another directory.
    fn says_in(&self, folder: &Path, profile: &str, variables: &[(&str, &str)]) -> String {
        let mut run = self
            .repo
            .command(self.repo.beside("script").to_str().unwrap());
        run.current_dir(folder)
            .env("CARGO_MANIFEST_DIR", folder)
            .env("PROFILE", profile)
            .envs(variables.iter().copied());
        let said = Output::of(&mut run);
        assert_eq!(said.code, 0, "{said}");
        let value = |name: &str| {
            let line = format!("cargo::rustc-env={name}=");
            let found = said.stdout.lines().find_map(|one| one.strip_prefix(&line));
            found.unwrap().to_owned()
        };
        let both = [value("TEDDY_BUILD_COMMIT"), value("TEDDY_BUILD_DATE")];
        both.join(" ").trim().to_owned()
    }
}

#[test]
fn a_build_knows_its_commit() {
    let Some(script) = BuildScript::new() else {
        return;
    };
    let repo = &script.repo;
    repo.write("a.txt", "a\n");
    let id = repo.commit("one");

    assert_eq!(script.says("debug", &[]), "");
    assert_eq!(script.says("release", &[]), format!("{id} 2026-01-02"));
    let given = [("TEDDY_COMMIT", "0123abcd 2026-11-23")];
    assert_eq!(script.says("debug", &given), "0123abcd 2026-11-23");
    let hostile = [("TEDDY_COMMIT", "0123abcd\u{1b}[2J")];
    assert_eq!(script.says("debug", &hostile), "");

    repo.write("a.txt", "b\n");
    assert_eq!(
        script.says("release", &[]),
        format!("{id}-dirty 2026-01-02")
    );
}

#[test]
fn a_package_says_the_commit_that_it_was_made_from_and_not_that_around_it() {
    let Some(script) = BuildScript::new() else {
        return;
    };
    let repo = &script.repo;
    repo.write("vendor/teddy-git/Cargo.toml", "");
    repo.commit("somebody else's");
    let vendored = repo.path().join("vendor/teddy-git");
    assert_eq!(script.says_in(&vendored, "release", &[]), "");
    assert_eq!(
        script.says_in(&vendored, "release", &[("PATH", "/nonexistent")]),
        ""
    );

    let note = |dirty: &str| {
        let id = "1".repeat(40);
        let note = format!("{{\n  \"git\": {{\n    \"sha1\": \"{id}\"{dirty}\n  }}\n}}\n");
        repo.write("vendor/teddy-git/.cargo_vcs_info.json", note);
        id
    };
    let id = note("");
    assert_eq!(script.says_in(&vendored, "debug", &[]), id);
    note(",\n    \"dirty\": true");
    assert_eq!(
        script.says_in(&vendored, "debug", &[]),
        format!("{id}-dirty")
    );
}

#[test]
fn the_version_is_one_line_and_its_details_are_asked_for() {
    let repo = TestRepo::new();
    let short = repo.done(&["-V"]);
    let start = format!("teddy {} (", env!("CARGO_PKG_VERSION"));
    assert!(
        short.starts_with(&start) && short.ends_with(")\n") && short.lines().count() == 1,
        "{short}"
    );
    assert_eq!(repo.done(&["--version"]), short);

    let long = repo.done(&["-vV"]);
    assert!(long.starts_with(&short), "{long}");
    for line in ["release: ", "commit-hash: ", "commit-date: ", "target: "] {
        assert!(long.contains(&format!("\n{line}")), "{long}");
    }
    assert!(long.contains("\nfeatures: "), "{long}");
    assert_eq!(repo.done(&["--version", "--verbose"]), long);
    assert_eq!(
        repo.json(&["-V"], 0)["release"],
        env!("CARGO_PKG_VERSION"),
        "{short}"
    );
}
