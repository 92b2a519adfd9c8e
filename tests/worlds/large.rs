//! Large files are recorded as git records them, without loading them into memory.

use crate::plans::{edit, execute, plan};
use crate::support::remotes::session_refs;
use crate::support::{Output, TestRepo};

/// Above TeDDy's limit for reading a file into memory.
const LARGE: usize = 17 << 20;
/// Size of the file in the memory test.
const FILE: usize = 80 << 20;
/// Limit for a process's data in KiB: less than the file, enough for everything else.
const MEMORY: usize = 64 << 10;

/// Returns incompressible bytes.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = (0..length.div_ceil(8)).flat_map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.take(length).collect()
}

fn lines(end: &str, length: usize) -> Vec<u8> {
    let line = format!("some words $Id$ in a line{end}");
    let mut text = line.repeat(length / line.len() + 1).into_bytes();
    text.extend(b"\n");
    text
}

/// Checks that a large file gives the same blob as in git, and that a turn that deletes it can be
/// undone.
#[track_caller]
fn check(attributes: &str, settings: &[(&str, &str)], content: &[u8]) {
    let repo = TestRepo::new()
        .file(".gitattributes", attributes)
        .file("large", "small\n")
        .file("a.txt", "one\n");
    for (key, value) in settings {
        repo.git(&["config", key, value]);
    }
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.write("large", content);
    std::fs::write(repo.beside("plan.md"), plan("Go", &[execute("rm large")])).unwrap();
    repo.done(&["execute", "../plan.md", "-y"]);

    let recorded = repo.git(&["rev-parse", "teddy/sessions/demo^2^:large"]);
    assert!(!repo.path().join("large").exists(), "{attributes}");
    repo.done(&["undo"]);
    let back = std::fs::read(repo.path().join("large")).unwrap();
    let expected = repo.git(&["hash-object", "--path", "large", "large"]);
    assert_eq!(recorded, expected, "{attributes}");
    let args = ["cat-file", "--filters", "--path=large", &recorded];
    let mut git = repo.command("git");
    let git = git.current_dir(repo.path()).args(args).output().unwrap();
    // gix writes `ident` and UTF-16 differently. The blob is the same, which was checked above.
    let is_gixs = attributes.contains("ident") || attributes.contains("encoding");
    let is_same = is_gixs || back == git.stdout;
    assert!(is_same, "other bytes came back: {attributes}");
}

#[test]
fn promise_d5_a_large_file_is_recorded_and_brought_back_as_it_is() {
    check("", &[], &noise(1, LARGE));
    check("* text=auto", &[], &noise(2, LARGE));
    check(
        "",
        &[("core.autocrlf", "true")],
        &lines("\r\n", LARGE)[..LARGE / 27 * 27],
    );
}

#[test]
fn promise_d5_a_large_file_is_filtered_as_git_does() {
    let crlf = lines("\r\n", LARGE);
    let whole = crlf.len() - 1;
    check("large text eol=crlf", &[], &crlf[..whole]);
    check("large ident", &[], &lines("\n", LARGE));
    let wide: Vec<u8> = lines("\n", LARGE)
        .iter()
        .flat_map(|&byte| [byte, 0])
        .collect();
    check("large working-tree-encoding=UTF-16LE", &[], &wide);
    let filter = [
        ("filter.up.clean", "tr a-z A-Z"),
        ("filter.up.smudge", "tr A-Z a-z"),
    ];
    let small: Vec<u8> = lines("\n", LARGE).to_ascii_lowercase();
    check("large filter=up", &filter, &small);
}

/// Runs teddy with the memory limit.
#[track_caller]
fn run(repo: &TestRepo, args: &[&str]) {
    let teddy = repo.teddy_command(args);
    let mut command = repo.command("sh");
    command
        .args(["-c", &format!("ulimit -d {MEMORY}; exec \"$@\""), "sh"])
        .arg(teddy.get_program())
        .args(teddy.get_args())
        .current_dir(repo.path());
    for (name, value) in teddy.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = Output::from(command.output().unwrap());
    assert_eq!(output.code, 0, "{args:?}: {output}");
}

#[test]
fn promise_d5_a_large_file_is_in_no_memory_as_a_whole() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.write("large", noise(1, FILE));
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt", "--session"]);

    repo.write("large", noise(2, FILE));
    let small = plan("Edit", &[edit("a.txt", "one", "two")]);
    std::fs::write(repo.beside("edit.md"), small).unwrap();
    run(&repo, &["status"]);
    run(&repo, &["execute", "../edit.md", "-y"]);

    let script = "cat a.txt a.txt > new; cat large >> new; mv new large";
    std::fs::write(repo.beside("run.md"), plan("Run", &[execute(script)])).unwrap();
    run(&repo, &["execute", "../run.md", "-y"]);
    run(&repo, &["diff"]);
    run(&repo, &["undo"]);
    run(&repo, &["redo"]);
    repo.write("large", noise(3, FILE));
    run(&repo, &["restore", "0", "--theirs"]);
    run(&repo, &["doctor", "--fix"]);
    run(&repo, &["verify"]);

    let back = std::fs::read(repo.path().join("large")).unwrap();
    assert!(
        back == noise(2, FILE),
        "the file is not what it was before the turns"
    );
}

#[test]
fn b8_a_file_above_the_limit_is_refused_and_takes_no_memory() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("one").done();
    let tip = repo.git(&["rev-parse", "teddy/sessions/one"]);
    let big = std::fs::File::create(repo.path().join("big")).unwrap();
    big.set_len(513 << 20).unwrap();
    repo.git(&["-c", "core.bigFileThreshold=1m", "add", "big"]);
    repo.git(&["commit", "-q", "-m", "Big"]);
    repo.remove("big");

    // `git bundle create` would refuse the session without its manifest.
    let bundle = repo.beside("big.bundle").display().to_string();
    let main = repo.git(&["rev-parse", "main"]);
    let header =
        format!("# v2 git bundle\n{tip} refs/teddy/sessions/one\n{main} refs/heads/big\n\n");
    std::fs::write(&bundle, header).unwrap();
    let pack =
        format!("printf '%s\n' {tip} {main} | git pack-objects --revs --stdout -q >> '{bundle}'");
    Output::of(
        repo.command("sh")
            .current_dir(repo.path())
            .args(["-c", &pack]),
    )
    .check(0, &[]);
    assert!(std::fs::metadata(&bundle).unwrap().len() < 8 << 20);

    let into = TestRepo::new().file("other.txt", "other\n");
    into.commit("other");
    let teddy = env!("CARGO_BIN_EXE_teddy");
    let line = format!("ulimit -v 4000000; exec '{teddy}' fetch '{bundle}'");
    let mut shell = into.command("sh");
    for (name, value) in into.teddy_command(&[]).get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let fetched = Output::of(shell.current_dir(into.path()).args(["-c", &line]));
    insta::assert_snapshot!(fetched.shown(&repo), @"
    --- stderr
    error: cannot import `[dir]/big.bundle`: object [id] in it has 513 MiB, and at most 512 are accepted
    hint: `--large` accepts it if you know where it comes from
    exit code 1
    ");
    assert_eq!(session_refs(&into), "");
}
