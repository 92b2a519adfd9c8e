//! `export --html`: the same pages as files.

use std::path::Path;

use regex::Regex;

use crate::fake::{Fake, stream};
use crate::plans::{create, execute, plan};
use crate::support::TestRepo;
use crate::support::web;

/// Returns all files below a directory with their text.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut open = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(below) = open.pop() {
        for entry in std::fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Checks that every link leads to one of the pages.
#[track_caller]
fn check_links(folder: &Path) {
    let link = Regex::new(r#"(?:href|src|action)="([^"]*)""#).unwrap();
    for (name, text) in files(folder) {
        for found in link.captures_iter(&text) {
            let link = found[1].split('#').next().unwrap();
            let from = folder.join(&name);
            let to = from.parent().unwrap().join(link);
            let leads = link.is_empty() || link.starts_with("https://") || to.is_file();
            assert!(leads, "{name} has a link to {link}");
        }
    }
}

#[test]
fn tokens_without_a_price_have_no_cost() {
    for (price, cost) in [("", false), (", price: { input: 1, output: 1 }", true)] {
        let repo = TestRepo::new().file("a.txt", "a\n");
        repo.commit("init");
        let answer = plan("Make b", &[create("b.txt", "b\n")]);
        let fake = Fake::answering(&[stream(&answer, "stop", (1_000_000, 9))]);
        repo.configure(&format!(
            "model: fake\nmodels:\n  fake: {{ kind: openai, id: x, base_url: \"{}/v1\"{price} }}\n",
            fake.origin
        ));
        repo.done(&["start", "make b", "--name", "demo", "-y"]);
        repo.done(&["export", "--html", "../pages", "demo"]);
        let page = std::fs::read_to_string(repo.beside("pages/s/demo/index.html")).unwrap();
        assert!(page.contains("1,000,000 tokens read, 9 written"), "{page}");
        assert_eq!(page.contains(" in all"), cost, "{page}");
    }
}

#[test]
fn pages_are_files_that_lead_to_each_other() {
    let repo = web::project();
    let out = repo.json(&["export", "--html", "../pages", "--all"], 0);
    assert_eq!(out["sessions"], serde_json::json!(["demo", "other-way"]));
    let pages = repo.beside("pages");
    let names: Vec<String> = files(&pages).into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "icon.svg",
            "index.html",
            "s/demo/0.html",
            "s/demo/1.html",
            "s/demo/2.html",
            "s/demo/index.html",
            "s/other-way/index.html",
            "style.css",
        ]
    );
    assert_eq!(out["pages"], 8);
    check_links(&pages);
    for (name, text) in files(&pages) {
        assert!(
            !text.contains("<script") && !text.contains("<form"),
            "{name}: {text}"
        );
    }
}

#[test]
fn a_branch_has_the_turns_that_it_shares() {
    let repo = web::project();
    repo.done(&["export", "--html", "../pages", "other-way"]);
    let pages = repo.beside("pages");
    assert!(pages.join("s/other-way/1.html").is_file());
    check_links(&pages);
}

#[test]
fn keys_and_names_are_not_exported() {
    let key = concat!("gh", "p_a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs4x8Pq2");
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let secret = format!("token {key} of /home/ada/x\n");
    let answer = plan(
        "Keep a key",
        &[
            create("b.txt", &secret),
            // The page truncates the output within the key. Half a key would not be recognized as
            // one.
            execute(&format!(
                "head -c 262130 /dev/zero | tr '\\0' ' '; printf '%s' ' {key}'; yes | head -c 500"
            )),
        ],
    );
    repo.reply(&answer);
    repo.done(&["resume", "-y", "-m", &secret]);
    repo.done(&["export", "--html", "../pages"]);

    for (name, text) in files(&repo.beside("pages")) {
        assert!(!text.contains(&key[..12]), "{name} has the key");
        assert!(!text.contains("/home/ada"), "{name} has the name");
        let home = repo.beside("home");
        assert!(
            !text.contains(home.to_str().unwrap()),
            "{name} has the home"
        );
    }
}

#[test]
fn only_pages_of_its_own_are_replaced() {
    let repo = web::project();
    let pages = repo.beside("pages");
    repo.done(&["export", "--html", "../pages"]);
    repo.done(&["export", "--html", "../pages", "demo"]);
    let page = pages.join("style.css");
    let style = std::fs::read(&page).unwrap();
    std::fs::write(&page, "mine").unwrap();
    insta::assert_snapshot!(repo.printed(&["export", "--html", "../pages"]), @"
    --- stderr
    error: cannot replace `../pages`: `style.css` did not come from here, or was changed since
    hint: name another directory
    exit code 1
    ");
    std::fs::write(&page, style).unwrap();
    std::fs::write(pages.join("mine.txt"), "x").unwrap();
    insta::assert_snapshot!(repo.printed(&["export", "--html", "../pages"]), @"
    --- stderr
    error: cannot replace `../pages`: `mine.txt` did not come from here, or was changed since
    hint: name another directory
    exit code 1
    ");
    assert_eq!(
        std::fs::read_to_string(pages.join("mine.txt")).unwrap(),
        "x"
    );
    assert!(pages.join("s/demo/1.html").is_file());

    insta::assert_snapshot!(repo.printed(&["export", "--html", "../new", "nobody"]), @"
    --- stderr
    error: there is no session `nobody`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
    assert!(!repo.beside("new").exists());
    insta::assert_snapshot!(repo.printed(&["export", "--html", "x", "--bundle", "y"]), @"
    --- stderr
    error: the argument '--html <DIR>' cannot be used with '--bundle <FILE>'

    Usage: teddy export --html <DIR> [DIR|SESSION]...

    hint: `teddy export --help` shows its arguments, with examples
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["export", "--all"]), @"
    --- stderr
    error: the following required arguments were not provided:
      <--bundle <FILE>|--html <DIR>>

    Usage: teddy export --all <--bundle <FILE>|--html <DIR>> [DIR|SESSION]...

    hint: `teddy export --help` shows its arguments, with examples
    exit code 2
    ");
}

#[test]
fn damage_is_reported_and_the_other_pages_are_written() {
    let repo = web::project();
    repo.git(&["update-ref", "refs/teddy/sessions/broken", "HEAD"]);
    repo.done(&["export", "--html", "../pages", "--all"]);
    let page = std::fs::read_to_string(repo.beside("pages/s/broken/index.html")).unwrap();
    assert!(page.contains("is not a turn of a session"), "{page}");
    assert!(repo.beside("pages/s/demo/2.html").is_file());
    check_links(&repo.beside("pages"));
}

#[test]
fn a_list_that_a_plan_wrote_has_no_file_deleted() {
    let repo = TestRepo::new().file(".gitignore", "public/\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("public/notes.txt", "only copy\n");
    let list = "# Written by teddy, which may replace these files and this folder.\nnotes.txt\n";
    repo.workflow()
        .run_plan(&plan("List it", &[create("public/.teddy-files", list)]));
    insta::assert_snapshot!(repo.printed(&["export", "--html", "public"]), @"
    --- stderr
    error: cannot replace `public`: `.teddy-files` did not come from here, or was changed since
    hint: name another directory
    exit code 1
    ");
    assert_eq!(repo.read("public/notes.txt"), "only copy\n");
}

#[test]
fn the_total_of_a_turn_says_whose_lines_it_lacks() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("a.txt", "b\nc\n");
    repo.write("large.txt", "x\n".repeat(600_000));
    repo.workflow().record("Change").done();
    let folder = repo.beside("pages");
    repo.done(&["export", "--html", folder.to_str().unwrap()]);
    let page = std::fs::read_to_string(folder.join("s/demo/1.html")).unwrap();
    let total = "<span>2 files</span><span class=\"added\">+2</span> <span class=\"removed\">−1</span> \
                 <span>without the lines of 1 file</span>";
    assert!(page.contains(total), "{page}");
}

/// Bug: the turn after a damaged one led to the turn of another session at which its own began, as if
/// that were the one before.
#[test]
fn a_turn_after_a_damaged_one_has_no_turn_before_it() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let make = |name: &str| {
        let file = format!("{name}.txt");
        repo.run_plan(&plan(&format!("Make {name}"), &[create(&file, "x\n")]));
    };
    make("b");
    repo.workflow().branch("1", "other").done();
    make("c");
    make("d");
    let reference = "refs/teddy/sessions/other";
    let empty = repo.git(&["mktree"]);
    let grandparent = format!("{reference}~2");
    let bad = repo.git(&["commit-tree", &empty, "-p", &grandparent, "-m", "x"]);
    let tree = format!("{reference}^{{tree}}");
    let message = repo.git(&["log", "-1", "--format=%B", reference]);
    let after = format!("{reference}^2");
    let tip = repo.git(&[
        "commit-tree",
        &tree,
        "-p",
        &bad,
        "-p",
        &after,
        "-m",
        &message,
    ]);
    repo.git(&["update-ref", reference, &tip]);

    let pages = repo.beside("pages");
    repo.done(&["export", "--html", pages.to_str().unwrap(), "other", "demo"]);
    let page = std::fs::read_to_string(pages.join("s/other/3.html")).unwrap();
    assert!(!page.contains("← Turn"), "{page}");
}
