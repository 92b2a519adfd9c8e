//! `.worktreeinclude` and `worktree.copy`: patterns of ignored files for a copy, as git reads them.

use crate::plans::{execute, plan};
use crate::support::overlay::CHECKOUT;
use crate::support::{TestRepo, sample};

/// Files that git ignores.
const IGNORED: [&str; 12] = [
    "build/cfg.json",
    "build/deep/cfg.json",
    "build/deep/other.txt",
    "cache/a[1].txt",
    "cache/drop/z",
    "cache/keep/z",
    "logs/a.log",
    "logs/deep/b.log",
    "node_modules/x/cfg.json",
    "src/build/cfg.json",
    "top.cfg",
    "with space.cfg",
];

/// Each is a file of patterns.
const PATTERNS: [&str; 16] = [
    "**/cfg.json",
    "cfg.json",
    "*.log",
    "/build/cfg.json",
    "build/**/cfg.json",
    "build/",
    "keep/",
    "cache/keep",
    "*.cfg",
    "logs/*.log",
    "?uild/d*/",
    "[bc]*/*/z",
    "a\\[1\\].txt",
    "with space.cfg",
    "*.json\n!/build/cfg.json",
    "# a comment\n\n!nothing\nother.txt",
];

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", "build\ncache\nlogs\nnode_modules\n*.cfg\n")
        .file("a.txt", "a\n");
    repo.commit("init");
    IGNORED.iter().for_each(|path| repo.write(path, "x\n"));
    repo.write("untracked.txt", "x\n");
    let find = "find . -path ./.git -prune -o -type f -print | sed 's,^./,,' | sort > found.txt";
    repo.put("../plan.md", plan("Look", &[execute(find)]));
    repo
}

/// Returns the files in a copy that git ignores.
fn copied(repo: &TestRepo, session: &str) -> Vec<String> {
    repo.done(&["new", session]);
    found(repo)
}

/// Returns the files in the copy of the session in use that git ignores.
fn found(repo: &TestRepo) -> Vec<String> {
    repo.done(&["execute", "../plan.md", "-y", "-c", CHECKOUT]);
    let found = repo.read("found.txt");
    let ignored = found.lines().filter(|line| IGNORED.contains(line));
    ignored.map(str::to_owned).collect()
}

#[test]
fn patterns_match_inside_ignored_directories_as_in_git() {
    let repo = project();
    for (at, patterns) in sample(PATTERNS.iter().enumerate(), 3, 0) {
        repo.put("../patterns", format!("{patterns}\n"));
        let listed = repo.git(&[
            "-c",
            "core.quotePath=false",
            "ls-files",
            "-oi",
            "-X",
            "../patterns",
        ]);
        let mut expected: Vec<&str> = listed.lines().collect();
        expected.retain(|path| IGNORED.contains(path));
        expected.sort_unstable();
        assert!(!expected.is_empty(), "{patterns}");

        repo.write(".worktreeinclude", format!("{patterns}\n"));
        assert_eq!(copied(&repo, &format!("file-{at}")), expected, "{patterns}");
        repo.remove(".worktreeinclude");
        // The setting has the same rules.
        if at % 4 > 0 {
            continue;
        }
        let list: Vec<&str> = patterns.lines().collect();
        repo.configure(&format!(
            "worktree: {}\n",
            serde_json::json!({ "copy": list })
        ));
        assert_eq!(
            copied(&repo, &format!("setting-{at}")),
            expected,
            "{patterns}"
        );
        repo.configure("");
    }
    assert_eq!(copied(&repo, "none"), [""; 0]);
}

#[test]
fn a_list_that_a_command_broke_is_named_and_undone() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let execute = |plan: &str| repo.teddy(&["execute", plan, "-y", "-c", CHECKOUT]);
    let hint = "hint: correct or remove the file; if a turn wrote it, `teddy undo` takes it back";
    for script in [
        "ln -s /etc/hostname .worktreeinclude",
        "yes x | head -c 1100000 > .worktreeinclude",
        "printf '\\377\\n' > .worktreeinclude",
    ] {
        repo.put("../break.md", plan("Break", &[self::execute(script)]));
        execute("../break.md").check(0, &[]);
        let out = execute("../plan.md");
        if script.starts_with("printf") {
            // A pattern is bytes.
            out.check(0, &[]);
            repo.done(&["undo"]);
        } else {
            out.check(1, &["`.worktreeinclude`", hint]);
        }
        repo.done(&["undo"]);
        execute("../plan.md").check(0, &[]);
        repo.done(&["undo"]);
    }
}

#[test]
fn a_file_with_a_key_is_copied_only_if_the_settings_name_it() {
    let repo = project();
    let key = "api_token = \"sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEf\"\n";
    repo.write("top.cfg", key);
    repo.write(".worktreeinclude", "*.cfg\n");
    assert_eq!(copied(&repo, "one"), ["with space.cfg"]);

    repo.git(&["config", "--add", "teddy.worktree.copy", "[top.cfg]"]);
    assert_eq!(copied(&repo, "two"), ["top.cfg", "with space.cfg"]);
}

/// Bug: a secret stayed readable in the copy after the setting, or the file itself, was gone.
#[test]
fn a_copy_goes_with_its_file_and_with_the_setting_that_names_it() {
    let repo = project();
    repo.configure("worktree: { copy: [top.cfg, /build, node_modules] }\n");
    let kept = [
        "build/cfg.json",
        "build/deep/other.txt",
        "node_modules/x/cfg.json",
        "top.cfg",
    ];
    let mut all = kept.to_vec();
    all.insert(1, "build/deep/cfg.json");
    assert_eq!(copied(&repo, "one"), all);
    repo.remove("build/deep/cfg.json");
    assert_eq!(found(&repo), kept);

    // What git tracks by now is in the copy anyway.
    repo.git(&["add", "-f", "build/cfg.json"]);
    repo.configure("");
    assert_eq!(found(&repo), ["build/cfg.json"]);
    // A link takes the place of the copied dependencies.
    let read = plan("Read", &[execute("cat node_modules/x/cfg.json > read.txt")]);
    repo.put("../read.md", read);
    repo.done(&["execute", "../read.md", "-y", "-c", CHECKOUT]);
    assert_eq!(repo.read("read.txt"), "x\n");
}
