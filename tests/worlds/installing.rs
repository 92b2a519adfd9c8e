//! Packages made by the scripts in `.release` install with the tools that users have, and work.

use std::path::{Path, PathBuf};
use std::process::Command;

use teddy::host::process::find;

use crate::fake::{Act, Fake};
use crate::support::skipped;
use crate::support::{Output, TestRepo};

/// Settings of a release, except for those of the machine.
const PROJECT: [(&str, &str); 5] = [
    ("TEDDY_REPOSITORY", "https://teddy.example/project"),
    ("TEDDY_MAINTAINER", "Test <test@localhost>"),
    ("SOURCE_DATE_EPOCH", "1767323045"),
    ("TEDDY_DEB_COMPRESSION", "none"),
    ("TEDDY_GZIP", "1"),
];

/// Targets of a release, as `describe` names them.
const TARGETS: [&str; 4] = [
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];

/// Prints what packing needs from the program.
const STAND_IN: &str = r##"#!/bin/sh
case "$*" in
  --version) echo "teddy stand-in" ;;
  *man*) for last; do :; done; echo .TH > "$last/teddy.1"; echo .TH > "$last/git-teddy.1" ;;
  completions*) echo "# $2" ;;
  *) exit 1 ;;
esac
"##;

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn script(repo: &TestRepo, name: &str) -> Command {
    let path = format!("{}/.release/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut command = repo.command(&path);
    command.envs(PROJECT);
    command
}

fn make(repo: &TestRepo, name: &str, args: &[&Path]) -> Output {
    let out = Output::of(script(repo, name).args(args));
    assert_eq!(out.code, 0, "{name}: {out}");
    out
}

/// Returns a directory with fake programs, for tests of packing only.
fn stand_in(repo: &TestRepo) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = repo.beside("bin");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["teddy", "git-teddy"] {
        let path = folder.join(name);
        std::fs::write(&path, STAND_IN).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Returns a directory with the programs under test.
fn built(repo: &TestRepo) -> PathBuf {
    let folder = repo.beside("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let programs = [env!("CARGO_BIN_EXE_teddy"), env!("CARGO_BIN_EXE_git-teddy")];
    for program in programs.map(Path::new) {
        std::fs::copy(program, folder.join(program.file_name().unwrap())).unwrap();
    }
    if find("strip").is_some() {
        // Debug information is 80 % of the program, and no package contains it.
        let mut strip = repo.command("strip");
        strip.current_dir(&folder).args(["teddy", "git-teddy"]);
        Output::of(&mut strip).check(0, &[]);
    }
    folder
}

fn target() -> &'static str {
    let is_arm = cfg!(target_arch = "aarch64");
    let is_mac = cfg!(target_os = "macos");
    TARGETS[usize::from(is_mac) * 2 + usize::from(is_arm)]
}

/// A release on a loopback server.
struct Release {
    /// Holds the release's files and the installation.
    repo: TestRepo,
    server: Fake,
}

impl Release {
    /// Packs programs and serves the archive.
    fn of(programs: fn(&TestRepo) -> PathBuf) -> Release {
        let repo = TestRepo::new();
        let folder = programs(&repo);
        let dist = repo.beside("dist");
        make(&repo, "archive", &[&folder, Path::new(target()), &dist]);
        make(&repo, "describe", &[&dist]);
        let name = format!("teddy-{}-{}.tar.gz", version(), target());
        let archive = std::fs::read(dist.join(name)).unwrap();
        Release {
            server: serve(&archive, 4),
            repo,
        }
    }

    /// Runs the install script with a prefix.
    fn install(&self, args: &[&str]) -> Command {
        let mut command = self.repo.command("sh");
        command
            .arg(self.repo.beside("dist/install.sh"))
            .args(args)
            .env("TEDDY_DOWNLOAD_URL", &self.server.origin)
            .env("TMPDIR", self.repo.path())
            .current_dir(self.repo.beside("home"));
        command
    }

    /// Returns all paths in the home directory and the temporary directory.
    fn left(&self) -> Vec<String> {
        let mut find = self.repo.command("find");
        find.arg(self.repo.beside("home"))
            .arg(self.repo.path())
            .args(["-mindepth", "1", "-not", "-path", "*/.git*"]);
        let found = Output::of(&mut find);
        found.stdout.lines().map(str::to_owned).collect()
    }
}

/// Serves this many requests.
fn serve(bytes: &[u8], times: usize) -> Fake {
    let length = bytes.len();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    Fake::start(vec![
        vec![Act::Send(head), Act::Bytes(bytes.to_vec())];
        times
    ])
}

/// Prints why a test is skipped if a program is missing.
fn lacks(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| find(program).is_none());
    if let Some(program) = missing {
        skipped(&format!("`{program}` is not installed"));
    }
    missing.is_some()
}

/// Runs the first commands of a user with an installation.
fn smoke(repo: &TestRepo, bin: &Path) {
    let path = format!(
        "{}:{}",
        bin.display(),
        teddy::host::env::var("PATH").unwrap()
    );
    let run = |program: &str, args: &[&str]| {
        let mut command = repo.command(program);
        command.env("PATH", &path).args(args);
        Output::of(&mut command)
    };
    let version = format!("teddy {} ", version());
    run("teddy", &["--version"]).check(0, &[&version]);
    run("git", &["teddy", "-h"]).check(0, &["usage: git teddy "]);
    let demo = repo.beside("demo");
    run("git", &["teddy", "demo", demo.to_str().unwrap()]).check(0, &["The session is in"]);
    if find("man").is_some() {
        // `man` finds the page next to the `bin` directory in PATH.
        run("git", &["teddy", "--help"]).check(0, &["git-teddy", "EXAMPLES"]);
    } else {
        skipped("`man` is not installed: `git teddy --help` is not tried");
    }
}

#[test]
fn the_install_script_installs_a_program_that_works() {
    if lacks(&["curl"]) {
        return;
    }
    let release = Release::of(built);
    let prefix = release.repo.beside("home/apps");
    let mut install = release.install(&["--prefix", "apps"]);
    Output::of(&mut install).check(0, &["Installed teddy ", "is not on your PATH"]);
    smoke(&release.repo, &prefix.join("bin"));

    for completion in [
        "bash-completion/completions/git-teddy",
        "zsh/site-functions/_teddy",
        "fish/vendor_completions.d/git-teddy.fish",
    ] {
        let script = std::fs::read_to_string(prefix.join("share").join(completion)).unwrap();
        assert!(script.contains(" teddy -- "), "{completion}: {script}");
    }
    let temporary = release.left();
    assert!(
        temporary.iter().all(|path| path.contains("/home/")),
        "{temporary:?}"
    );
}

#[test]
fn the_install_script_works_with_wget_and_takes_the_prefix_from_the_environment() {
    if lacks(&["wget"]) {
        return;
    }
    let release = Release::of(stand_in);
    // A PATH with everything except curl.
    let tools = release.repo.beside("tools");
    std::fs::create_dir(&tools).unwrap();
    for tool in [
        "cat",
        "chmod",
        "cp",
        "find",
        "gzip",
        "mkdir",
        "mktemp",
        "mv",
        "rm",
        "sed",
        "sh",
        "sha256sum",
        "tar",
        "uname",
        "wget",
    ] {
        std::os::unix::fs::symlink(find(tool).unwrap(), tools.join(tool)).unwrap();
    }
    let mut install = release.install(&[]);
    install
        .env("PATH", &tools)
        .env("TEDDY_INSTALL_DIR", release.repo.beside("home/own"));
    Output::of(&mut install).check(0, &["Installed teddy stand-in to ", "teddy needs git"]);
    assert!(release.repo.beside("home/own/bin/git-teddy").is_file());
}

#[test]
fn the_install_script_replaces_what_was_there_and_leaves_nothing_else() {
    if lacks(&["curl"]) {
        return;
    }
    let release = Release::of(stand_in);
    Output::of(&mut release.install(&[])).check(0, &["/home/.local/bin"]);
    let first = release.left();
    let program = release.repo.beside("home/.local/bin/teddy");
    std::fs::write(&program, "old").unwrap();
    let open = std::fs::File::open(&program).unwrap();

    Output::of(&mut release.install(&[])).check(0, &[]);
    assert_eq!(std::fs::read_to_string(&program).unwrap(), STAND_IN);
    assert_eq!(
        std::io::read_to_string(open).unwrap(),
        "old",
        "not in place"
    );
    assert_eq!(release.left(), first);
}

#[test]
fn the_install_script_refuses_what_does_not_match_its_checksum() {
    if lacks(&["curl"]) {
        return;
    }
    let mut release = Release::of(stand_in);
    release.server = serve(b"something else", 1);
    let refused = Output::of(&mut release.install(&[]));
    refused.check(
        1,
        &["error: the checksum of teddy-", "nothing was installed"],
    );
    assert_eq!(release.left(), Vec::<String>::new());
}

#[test]
fn the_install_script_does_nothing_if_it_arrives_in_part() {
    let release = Release::of(stand_in);
    let path = release.repo.beside("dist/install.sh");
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    for kept in (0..lines.len()).step_by(7) {
        std::fs::write(&path, lines[..kept].join("\n")).unwrap();
        let out = Output::of(&mut release.install(&[]));
        assert!(!out.stderr.contains("Downloading"), "{kept} lines: {out}");
        assert_eq!(release.left(), Vec::<String>::new(), "{kept} lines");
    }
}

#[test]
fn the_install_script_says_what_is_wrong() {
    let mut release = Release::of(stand_in);
    let check = |release: &Release, args: &[&str], code: i32, words: &[&str]| {
        Output::of(&mut release.install(args)).check(code, words);
    };
    check(
        &release,
        &["--perfix", "x"],
        2,
        &["unexpected argument `--perfix`"],
    );
    check(&release, &["--prefix"], 2, &["`--prefix` needs a value"]);
    check(
        &release,
        &["--help"],
        0,
        &["Usage: sh install.sh [--prefix DIR]"],
    );
    let other = ["--target", "sparc-sun-solaris"];
    check(
        &release,
        &other,
        1,
        &[
            "there is no build for sparc-sun-solaris",
            "cargo install teddy-git",
        ],
    );
    let origin = release.server.origin.replace("http:", "ftp:");
    let mut plain = release.install(&[]);
    plain.env("TEDDY_DOWNLOAD_URL", origin);
    Output::of(&mut plain).check(1, &["is not an https address"]);

    if !lacks(&["curl"]) {
        release.server.origin = "http://127.0.0.1:1".to_owned();
        check(&release, &[], 1, &["cannot download teddy-"]);
        release.server = serve(b"", 0);
    }
    assert_eq!(release.left(), Vec::<String>::new());
}

#[test]
fn the_scripts_of_a_release_say_what_they_lack() {
    let repo = TestRepo::new();
    let folder = stand_in(&repo);
    let dist = repo.beside("dist");
    let check = |name: &str, args: &[&Path], without: &str, words: &str| {
        let mut command = script(&repo, name);
        Output::of(command.args(args).env_remove(without)).check(1, &[words]);
    };
    check("stage", &[&repo.path(), &dist], "", "no program");
    std::fs::create_dir_all(&dist).unwrap();
    check("describe", &[&dist], "", "no archive of");
    let is_set = |field: &str| {
        let manifest =
            std::fs::read_to_string(format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR")));
        manifest.unwrap().contains(&format!("\n{field} = "))
    };
    if !is_set("repository") {
        check(
            "describe",
            &[&dist],
            "TEDDY_REPOSITORY",
            "the project has no address",
        );
    }
    if find("dpkg-deb").is_some() && !is_set("authors") {
        check(
            "deb",
            &[&folder, &dist],
            "TEDDY_MAINTAINER",
            "nobody answers",
        );
    }
}

#[test]
fn an_archive_is_the_same_when_it_is_made_again() {
    let repo = TestRepo::new();
    let folder = stand_in(&repo);
    let make = |out: &str| {
        let dist = repo.beside(out);
        make(&repo, "archive", &[&folder, Path::new(target()), &dist]);
        std::fs::read(dist.join(format!("teddy-{}-{}.tar.gz", version(), target()))).unwrap()
    };
    assert_eq!(make("one"), make("two"));
}

#[test]
fn the_formula_installs_a_program_that_works() {
    if lacks(&["ruby"]) {
        return;
    }
    let repo = TestRepo::new();
    let folder = built(&repo);
    let dist = repo.beside("dist");
    make(&repo, "archive", &[&folder, Path::new(target()), &dist]);
    let own = dist.join(format!("teddy-{}-{}.tar.gz", version(), target()));
    for other in TARGETS {
        let path = dist.join(format!("teddy-{}-{other}.tar.gz", version()));
        if path != own {
            std::fs::write(path, other).unwrap();
        }
    }
    make(&repo, "describe", &[&dist]);
    let formula = dist.join("teddy.rb");
    let text = std::fs::read_to_string(&formula).unwrap();
    assert!(!text.contains('@'), "{text}");

    let server = serve(&std::fs::read(own).unwrap(), 1);
    let download = format!(
        "https://teddy.example/project/releases/download/v{}",
        version()
    );
    std::fs::write(&formula, text.replace(&download, &server.origin)).unwrap();
    let mut brew = repo.command("ruby");
    brew.arg(format!(
        "{}/tests/it/installing/formula.rb",
        env!("CARGO_MANIFEST_DIR")
    ))
    .arg(&formula)
    .arg(repo.beside("cellar"));
    Output::of(&mut brew).check(0, &[]);
    smoke(&repo, &repo.beside("cellar/bin"));
    assert!(repo.beside("cellar/share/man/man1/teddy-land.1").is_file());
    assert!(
        repo.beside("cellar/etc/bash_completion.d/git-teddy")
            .exists()
    );
}

/// Builds the Debian package and installs it in an empty root. Returns the root.
fn debian(repo: &TestRepo) -> PathBuf {
    let folder = built(repo);
    let dist = repo.beside("dist");
    let made = make(repo, "deb", &[&folder, &dist]);
    let package = made.stdout.trim();
    let listed = Output::of(repo.command("dpkg-deb").args(["--contents", package]));
    listed.check(0, &["root/root"]);
    assert!(!listed.stdout.contains("test"), "{listed}");
    let depends = repo
        .command("dpkg-deb")
        .args(["--field", package, "Depends"])
        .output()
        .unwrap();
    let depends = String::from_utf8(depends.stdout).unwrap();
    assert!(depends.trim_end().ends_with("git"), "{depends}");

    let root = repo.beside("root");
    std::fs::create_dir(&root).unwrap();
    if rustix::process::geteuid().is_root() && find("dpkg").is_some() {
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
        let at = format!("--root={}", root.display());
        let path = format!("{}:/usr/sbin:/sbin", teddy::host::env::var("PATH").unwrap());
        let mut install = repo.command("dpkg");
        // The empty root has no libraries and no git.
        install
            .env("PATH", path)
            .args([&at, "--force-depends", "--install", package]);
        Output::of(&mut install).check(0, &[]);
        let listed = Output::of(repo.command("dpkg").args([&at, "--listfiles", "teddy"]));
        listed.check(0, &["/usr/bin/git-teddy"]);
    } else {
        skipped("only root can install for others: the package is unpacked");
        let mut unpack = repo.command("dpkg-deb");
        Output::of(unpack.args(["--extract", package]).arg(&root)).check(0, &[]);
    }
    root
}

#[test]
fn the_package_for_debian_installs_a_program_that_works() {
    if lacks(&["dpkg-deb", "dpkg-shlibdeps"]) {
        return;
    }
    let repo = TestRepo::new();
    let root = debian(&repo);
    smoke(&repo, &root.join("usr/bin"));
    for file in [
        "bash-completion/completions/teddy",
        "bash-completion/completions/git-teddy",
        "zsh/vendor-completions/_teddy",
        "fish/vendor_completions.d/teddy.fish",
        "doc/teddy/copyright",
        "doc/teddy/changelog.gz",
        "doc/teddy/changelog.Debian.gz",
        "man/man1/teddy.1.gz",
        "man/man1/git-teddy.1.gz",
        "man/man1/teddy-change-plan.1.gz",
    ] {
        let path = root.join("usr/share").join(file);
        assert!(
            path.metadata().is_ok_and(|found| found.len() > 50),
            "{file}"
        );
    }
    let copyright = std::fs::read_to_string(root.join("usr/share/doc/teddy/copyright")).unwrap();
    assert!(copyright.contains("\nLicense: Apache-2.0\n"), "{copyright}");
    assert!(
        copyright.contains("\n .\n The above copyright notice"),
        "{copyright}"
    );
}

#[test]
fn the_wheel_installs_a_program_that_works() {
    if lacks(&["python3"]) {
        return;
    }
    let repo = TestRepo::new();
    let mut venv = repo.command("python3");
    let made = Output::of(venv.args(["-m", "venv"]).arg(repo.beside("env")));
    if made.code != 0 {
        skipped("this Python makes no environment with pip: the wheel is not installed");
        return;
    }
    let (folder, dist) = (built(&repo), repo.beside("dist"));
    let wheel = make(&repo, "wheel", &[&folder, Path::new(target()), &dist]);
    let again = make(
        &repo,
        "wheel",
        &[&folder, Path::new(target()), &repo.beside("more")],
    );
    let bytes = |made: &Output| std::fs::read(made.stdout.trim()).unwrap();
    assert!(bytes(&wheel) == bytes(&again), "another wheel each time");

    let mut pip = repo.command(repo.beside("env/bin/pip").to_str().unwrap());
    pip.args(["install", "--no-index", "--disable-pip-version-check"])
        .arg(wheel.stdout.trim());
    Output::of(&mut pip).check(0, &["Successfully installed teddy-git-"]);
    smoke(&repo, &repo.beside("env/bin"));
    assert!(repo.beside("env/share/man/man1/teddy-land.1").is_file());
}

#[test]
fn the_npm_packages_install_a_program_that_works() {
    if lacks(&["node", "npm"]) {
        return;
    }
    let repo = TestRepo::new();
    let (folder, dist) = (built(&repo), repo.beside("dist"));
    let made = make(&repo, "npm", &[&folder, Path::new(target()), &dist]);
    let app = repo.beside("app");
    let mut npm = repo.command("npm");
    // The packages of other platforms are optional, and offline they do not exist.
    npm.args(["install", "-g", "--offline", "--no-audit", "--no-fund"])
        .args(["--no-update-notifier", "--prefix"])
        .arg(&app)
        .args(made.stdout.lines());
    Output::of(&mut npm).check(0, &["added 2 packages"]);
    let bin = app.join("bin");
    smoke(&repo, &bin);

    // Exit codes pass through, and a missing platform has a message.
    let run = |args: &[&str]| {
        let mut command = repo.command(bin.join("teddy").to_str().unwrap());
        Output::of(command.args(args))
    };
    run(&["no-such-command"]).check(2, &[]);
    let platform = made.stdout.lines().next().unwrap();
    let name = Path::new(platform).file_name().unwrap().to_str().unwrap();
    let name = name.strip_suffix(&format!("-{}.tgz", version())).unwrap();
    std::fs::remove_dir_all(app.join("lib/node_modules").join(name)).unwrap();
    run(&["--version"]).check(1, &[&format!("the package {name} is not installed")]);
}

#[test]
fn debians_own_checker_finds_no_mistake_in_the_package() {
    if lacks(&["dpkg-deb", "dpkg-shlibdeps", "lintian"]) {
        return;
    }
    let repo = TestRepo::new();
    let folder = built(&repo);
    let made = make(&repo, "deb", &[&folder, &repo.beside("dist")]);
    let mut lintian = repo.command("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    // Only the test's package has no valid maintainer address and no compression.
    let own = "bogus-mail-host,bogus-mail-host-in-debian-changelog,\
               uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball";
    lintian.args(["--suppress-tags", own]);
    let checked = Output::of(lintian.arg(made.stdout.trim()));
    assert_eq!(
        (checked.code, checked.stdout.as_str()),
        (0, ""),
        "{checked}"
    );
}

#[test]
fn every_action_of_the_release_is_pinned() {
    let path = format!(
        "{}/.github/workflows/release.yml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let workflow: serde_json::Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(
        workflow["permissions"],
        serde_json::json!({ "contents": "read" })
    );

    let uses: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("uses: "))
        .map(|(_, action)| action)
        .collect();
    assert!(uses.len() > 4, "{text}");
    for action in uses {
        let (id, version) = action
            .split_once(" # v")
            .unwrap_or_else(|| panic!("{action}"));
        let commit = id.split_once('@').unwrap().1;
        assert!(
            commit.len() == 40 && version.split('.').count() == 3,
            "{action}"
        );
    }
    for target in TARGETS {
        assert!(text.contains(&format!("target: {target},")), "{target}");
    }
    for script in ["archive", "deb", "describe", "npm", "wheel"] {
        assert!(
            text.contains(&format!("run: .release/{script} "))
                || text.contains(&format!("          .release/{script} "))
        );
    }
}
