//! `web`: pages of sessions over plain HTTP, and access control.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use crate::plans::{create, edit, execute, plan};
use crate::support::web::{HOSTILE, Web, ask, project};
use crate::support::{PATIENCE, TestRepo};

#[test]
fn pages_show_sessions_and_turns() {
    let repo = project();
    let before = (repo.users(), repo.tree(), repo.git(&["for-each-ref"]));
    let web = Web::start(&repo, &[]);

    let first = web.page("");
    for part in [
        "s/demo/index.html\">Write the number as a digit.</a>",
        "<span>demo</span>",
        "other-way",
        "from demo:1",
        "<svg",
    ] {
        assert!(first.contains(part), "no {part}: {first}");
    }
    let session = web.page("s/demo/");
    for part in [
        "<h1>Write the number as a digit.",
        "<title>Write the number as a digit. · TeDDy</title>",
        "Change a word",
        "Say so",
        "../../s/demo/2.html",
        "class=\"graph\"",
        "other-way",
    ] {
        assert!(session.contains(part), "no {part}: {session}");
    }
    let turn = web.page("s/demo/1.html");
    for part in [
        "Write the number as a digit.",
        "<del>two</del>",
        "<ins>2</ins>",
        "Execution Report",
        "turn_id",
        "rel=\"next\" href=\"../../s/demo/2.html\"",
    ] {
        assert!(turn.contains(part), "no {part}: {turn}");
    }
    let turn = web.page("s/demo/2.html");
    for part in ["said\nloud", "output/02.txt", "b.txt", "<h2>Plan</h2>"] {
        assert!(turn.contains(part), "no {part}: {turn}");
    }

    for (file, kind) in [
        ("style.css", "text/css"),
        ("live.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ] {
        assert!(web.get(file).head.contains(kind), "{file}");
    }
    drop(web);
    assert_eq!(
        before,
        (repo.users(), repo.tree(), repo.git(&["for-each-ref"]))
    );
}

/// Returns the section of a page for comments.
#[track_caller]
fn comment_section(page: &str) -> String {
    let start = page.find("<section id=\"comment\"");
    let start = start.unwrap_or_else(|| panic!("no section: {page}"));
    let end = start + page[start..].find("</section>").unwrap();
    let digest = regex::Regex::new("data-plan=\"[0-9a-f]+\"").unwrap();
    let section = digest.replace(&page[start..end], "data-plan=\"..\"");
    section.replace("><", ">\n<")
}

#[test]
fn a_waiting_plan_has_a_page_that_composes_comments() {
    let repo = TestRepo::new().file("a.txt", "1\n2\n3\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    let text = plan(
        "Write two & three",
        &[
            edit("a.txt", "2", "two\ntwo and a half"),
            create("it's <b>.txt", "new\n"),
            create("empty.txt", ""),
            execute("true"),
        ],
    );
    repo.workflow().plan_from("Words, please.", &text).done();
    let before = (repo.users(), repo.tree(), repo.git(&["for-each-ref"]));
    let web = Web::start(&repo, &[]);
    assert!(
        web.page("s/demo/").contains(
            "<a data-item href=\"../../s/demo/plan.html\">A plan waits for your review</a>"
        )
    );

    let page = web.page("s/demo/plan.html");
    for part in [
        "<h1><span class=\"number\">1</span> Write two &amp; three</h1>",
        "What 1 command of the plan would change is unknown before the run.",
        "<td class=\"n\">2</td><td class=\"sign\">+</td><td class=\"text\">two</td>",
    ] {
        assert!(page.contains(part), "no {part}: {page}");
    }
    assert!(
        !page.contains("<b>") && !page.contains("<form action"),
        "{page}"
    );
    insta::assert_snapshot!(comment_section(&page), @r#"
    <section id="comment" data-command="teddy execute" data-plan="..">
    <h2>Comment</h2>
    <p>Comments on lines, as they would be after the plan, decline it, and the model gets them as your next message. This page sends nothing: run the command in the project.</p>
    <div class="compose" hidden>
    <label>File<select name="file" autocomplete="off">
    <option value="a.txt" data-file="file-0" data-lines="4">a.txt</option>
    <option value="'it'\''s &lt;b&gt;.txt'" data-file="file-2" data-lines="1">it's &lt;b&gt;.txt</option>
    </select>
    </label>
    <label>Lines, for example 3 or 3-5; a click on a line chooses it, with Shift a range<input type="text" name="lines" inputmode="numeric" autocomplete="off" spellcheck="false">
    </label>
    <label>Comment<textarea name="text" rows="3" autocomplete="off">
    </textarea>
    </label>
    <p>
    <button type="button" name="add">Add to the command</button> <button type="button" name="remove">Remove the last one</button>
    </p>
    <p class="note" role="status">
    </p>
    </div>
    <pre class="plain" tabindex="0">
    <code>teddy execute --comment FILE:LINE='TEXT'</code>
    </pre>
    "#);
    assert_eq!(
        before,
        (repo.users(), repo.tree(), repo.git(&["for-each-ref"]))
    );

    // A session that is not in use is named in the command.
    repo.workflow().new_session("other").done();
    let page = web.page("s/demo/plan.html");
    assert!(
        page.contains("<code>teddy --session demo execute --comment FILE:LINE="),
        "{page}"
    );
    assert!(!web.page("s/other/").contains("plan.html"));
    assert!(
        web.get("s/other/plan.html")
            .body
            .contains("turn 1 has no plan yet")
    );

    // The command as the page writes it.
    let comments = ["a.txt:2-3=write it's \"two\"", "it's <b>.txt:1=-"];
    let mut args = vec!["--session", "demo", "execute"];
    for comment in comments {
        args.extend(["--comment", comment]);
    }
    insta::assert_snapshot!(repo.printed(&args), @"
    turn 1 declined [id]
    --- stderr
    Using the waiting message: Please change the plan as these comments on its result say. The rest of it can s...
    no other plan was made: no model is configured; your message is kept for `teddy -s demo plan`
    exit code 0
    ");
    assert_eq!(web.get("s/demo/plan.html").status, 404);
}

#[test]
fn a_plan_that_cannot_run_has_a_page_without_comments() {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    let text = plan(
        "Change",
        &[edit("a.txt", "<9>", "2"), create("b.txt", "1\n")],
    );
    repo.workflow().plan_from("Change it.", &text).refused();
    let web = Web::start(&repo, &[]);
    let page = web.page("s/demo/plan.html");
    assert!(
        page.contains("The plan cannot run: FIND is not in `a.txt`\n"),
        "{page}"
    );
    assert!(!page.contains("id=\"comment\""), "{page}");
}

#[test]
fn turns_are_compared_and_found() {
    let repo = project();
    let web = Web::start(&repo, &[]);
    let compared = web.page("compare.html?t=demo%3A2&t=demo%3A1");
    for part in ["demo:2 and demo:1 compared", "b.txt", "deleted"] {
        assert!(compared.contains(part), "no {part}: {compared}");
    }
    assert!(
        web.get("compare.html?t=demo%3A2")
            .body
            .contains("Mark two turns")
    );
    assert!(
        web.get("compare.html?t=demo%3A2&t=x%3A9")
            .body
            .contains("there is no session `x`")
    );

    let found = web.page("find.html?q=NUMBER");
    for part in ["s/demo/1.html", "<mark>number</mark>", "user_prompt.txt"] {
        assert!(found.contains(part), "no {part}: {found}");
    }
    assert!(web.page("find.html?q=NUMBER&case=1").contains("0 matches"));
    assert!(
        web.page("find.html?q=digit&in=output")
            .contains("0 matches")
    );
    assert!(
        web.page("find.html?q=%28")
            .contains("not a regular expression")
    );
    assert!(web.page("find.html").contains("<form"));
}

#[test]
fn only_the_full_address_is_answered() {
    let repo = project();
    let web = Web::start(&repo, &[]);
    let status = |request: String| ask(&web.host, &request).status;
    let (root, host) = (&web.root, &web.host);
    assert_eq!(status(format!("GET {root} HTTP/1.1\r\nHost: {host}")), 200);
    assert_eq!(status(format!("HEAD {root} HTTP/1.1\r\nHost: {host}")), 200);
    assert_eq!(status(format!("GET / HTTP/1.1\r\nHost: {host}")), 404);
    assert_eq!(
        status(format!("GET /style.css HTTP/1.1\r\nHost: {host}")),
        404
    );
    assert_eq!(
        status(format!("GET {root}s/../x HTTP/1.1\r\nHost: {host}")),
        404
    );
    assert_eq!(
        status(format!("GET {root} HTTP/1.1\r\nHost: evil.example")),
        403
    );
    assert_eq!(
        status(format!(
            "GET {root} HTTP/1.1\r\nHost: {host}\r\nHost: evil.example"
        )),
        403
    );
    assert_eq!(status(format!("GET {root} HTTP/1.0")), 403);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        assert_eq!(
            status(format!("{method} {root} HTTP/1.1\r\nHost: {host}")),
            405,
            "{method}"
        );
    }

    let head = web.get("").head;
    for header in [
        "content-security-policy: default-src 'none';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "no {header}: {head}");
    }
    assert!(
        !head.contains("unsafe") && !head.contains("access-control"),
        "{head}"
    );
    assert!(
        !web.page("").contains(root.as_str()),
        "the page tells the secret word"
    );
}

#[test]
fn what_others_wrote_is_text() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let said = format!("printf '%s\\n' '{}'", HOSTILE.replace('\'', ""));
    let answer = plan(
        HOSTILE,
        &[create("b.html", &format!("{HOSTILE}\n")), execute(&said)],
    );
    repo.reply(&answer);
    repo.done(&["resume", "-y", "-m", HOSTILE]);
    repo.put("<img src=x onerror=alert(2)>.txt", HOSTILE);
    repo.done(&["record", HOSTILE]);

    let web = Web::start(&repo, &[]);
    let pages = [
        "",
        "s/demo/",
        "s/demo/1.html",
        "s/demo/2.html",
        "find.html?q=script",
        "find.html?q=%3Cscript%3Ealert(3)",
        "compare.html?t=demo:1&t=demo:2",
        "compare.html?t=%3Cb%3E&t=%3Cb%3E",
        "s/%3Cscript%3E/1.html",
    ];
    for page in pages {
        let body = web.get(page).body;
        assert!(
            body.contains("&lt;") || page.is_empty() || page.starts_with("s/%3C"),
            "{page}: {body}"
        );
        for bad in ["<img", "<script>", "<b>"] {
            assert!(!body.contains(bad), "{page} has {bad}: {body}");
        }
        assert_eq!(body.matches("<script").count(), 1, "{page}");
    }
}

#[test]
fn two_hundred_requests_at_once_are_answered() {
    let repo = project();
    let web = Web::start(&repo, &[]);
    let pages = [
        "",
        "s/demo/",
        "s/demo/1.html",
        "s/demo/2.html",
        "find.html?q=a",
    ];
    thread::scope(|scope| {
        let web = &web;
        let asked: Vec<_> = (0..200)
            .map(|n| scope.spawn(move || web.get(pages[n % pages.len()]).status))
            .collect();
        for one in asked {
            assert_eq!(one.join().unwrap(), 200);
        }
    });
}

#[test]
fn a_large_output_is_truncated_with_a_note() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.reply(&plan("Talk", &[execute("yes 'a line' | head -c 2000000")]));
    repo.done(&["resume", "-y", "-m", "Talk."]);
    let page = Web::start(&repo, &[]).page("s/demo/1.html");
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
    assert!(
        page.contains("Cut here: 1.9 MiB in all."),
        "the page does not say that it is cut"
    );
}

#[test]
fn what_is_damaged_hides_nothing_else() {
    let repo = project();
    repo.git(&["update-ref", "refs/teddy/sessions/broken", "HEAD"]);
    let web = Web::start(&repo, &[]);
    assert!(web.page("").contains("s/broken/index.html"));
    assert!(web.page("").contains("Not all of it can be read"));
    assert!(web.page("s/broken/").contains("is not a turn of a session"));
    assert_eq!(web.get("s/broken/1.html").status, 404);
    assert_eq!(web.get("s/nowhere/").status, 404);
    assert!(web.page("s/demo/").contains("Say so"));
}

#[test]
fn a_repository_may_vanish_and_come_back() {
    let repo = project();
    let web = Web::start(&repo, &[]);
    web.page("s/demo/");
    let away = repo.beside("away");
    std::fs::rename(repo.path(), &away).unwrap();
    let gone = web.get("s/demo/1.html");
    assert_eq!(gone.status, 503);
    assert!(
        gone.body.contains("The repository cannot be read"),
        "{}",
        gone.body
    );
    assert_eq!(web.get("state").status, 503);
    assert_eq!(web.get("style.css").status, 200);
    std::fs::rename(&away, repo.path()).unwrap();
    web.page("s/demo/1.html");
}

#[test]
fn pages_show_a_turn_of_another_process() {
    let repo = project();
    let web = Web::start(&repo, &[]);
    let before = web.page("state");
    assert_eq!(before, web.page("state"));
    repo.workflow().undo(1).done();
    assert_ne!(before, web.page("state"));
    assert!(web.page("s/other-way/").contains("to turn 0"));
}

#[test]
fn a_port_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let repo = project();
    repo.teddy(&["web", "--port", &port]).check(
        1,
        &[&format!("port {port} is in use"), "leave `--port` out"],
    );
}

#[test]
fn ctrl_c_ends_it() {
    let repo = project();
    let web = Web::start(&repo, &[]);
    web.page("");
    assert_eq!(web.interrupt(), Some(130));
}

#[test]
fn json_has_the_address_alone() {
    let repo = project();
    let mut command = repo.teddy_command(&["web", "--json"]);
    let mut child = command
        .current_dir(repo.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let value = serde_json::Deserializer::from_reader(child.stdout.take().unwrap())
        .into_iter::<serde_json::Value>()
        .next();
    child.kill().unwrap();
    child.wait().unwrap();
    let value = value.unwrap().unwrap();
    assert!(
        value["url"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:"),
        "{value}"
    );
    assert_eq!(value.as_object().unwrap().len(), 1, "{value}");
}

#[test]
fn the_file_for_the_browser_is_private() {
    let repo = project();
    let (bin, note) = (repo.beside("bin"), repo.beside("note"));
    std::fs::create_dir(&bin).unwrap();
    for name in ["xdg-open", "open"] {
        let script = format!(
            "#!/bin/sh\nprintf '%s' \"$*\" > '{0}.new'; mv '{0}.new' '{0}'\n",
            note.display()
        );
        std::fs::write(bin.join(name), script).unwrap();
        std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let path = format!(
        "{}:{}",
        bin.display(),
        teddy::host::env::var("PATH").unwrap()
    );
    let web = Web::start_with(&repo, &["--open"], &[("PATH", &path)]);

    let patience = Instant::now();
    while !note.exists() && patience.elapsed() < PATIENCE {
        thread::yield_now();
    }
    let given = std::fs::read_to_string(&note).unwrap();
    assert!(
        !given.contains(&web.root) && given.ends_with(".html"),
        "{given}"
    );
    let mode = std::fs::metadata(&given).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{given}");
    assert!(std::fs::read_to_string(&given).unwrap().contains(&web.url));
    assert_eq!(web.interrupt(), Some(130));
    assert!(!std::path::Path::new(&given).exists(), "{given} stays");
}
