//! Trust in a repository's settings: all of them are shown, any change of a byte ends the trust,
//! and TeDDy asks only at a terminal.

use super::ground::{Ground, plan, words};
use crate::support::fake::Fake;

fn ignored(ground: &Ground) -> bool {
    words(&ground.teddy(&["status"])).contains("settings of this repository are ignored")
}

#[test]
fn trust_shows_what_it_allows_and_ends_with_any_change() {
    let ground = Ground::new();
    ground
        .repo
        .put(".teddy/config.yaml", "preview_command: cat\n");
    assert!(ignored(&ground));
    let asked = ground.teddy(&["trust"]);
    assert!(
        !asked.status.success() && words(&asked).contains("preview_command: cat"),
        "nobody is there to say yes: {}",
        words(&asked)
    );
    assert!(ignored(&ground));
    ground.ok(&["trust", "-y"]);
    assert!(!ignored(&ground));
    type Change<'a> = (&'a str, &'a dyn Fn());
    let changes: [Change<'_>; 4] = [
        ("a byte of the configuration", &|| {
            ground
                .repo
                .write(".teddy/config.yaml", "preview_command: cat \n")
        }),
        ("a new prompt", &|| {
            ground.repo.write(".teddy/prompts/developer.xml", "<evil/>")
        }),
        ("bytes that are no text", &|| {
            ground.repo.write(".teddy/prompts/developer.xml", [0xff])
        }),
        ("other bytes that are no text", &|| {
            ground.repo.write(".teddy/prompts/developer.xml", [0xfe])
        }),
    ];
    for (name, change) in changes {
        change();
        assert!(ignored(&ground), "{name} leaves trust as it was");
        let shown = words(&ground.teddy(&["trust"]));
        assert!(
            shown.contains("+") || shown.contains("---"),
            "{name} is not shown: {shown}"
        );
        ground.ok(&["trust", "-y"]);
        assert!(!ignored(&ground), "{name}");
    }
    ground.ok(&["trust", "--revoke"]);
    assert!(ignored(&ground));
}

#[test]
fn a_damaged_record_of_trust_trusts_nothing_and_is_written_anew() {
    let ground = Ground::new();
    ground
        .repo
        .put(".teddy/config.yaml", "preview_command: cat\n");
    ground.ok(&["trust", "-y"]);
    let folder = ground.repo.beside("home/.config/teddy/trust");
    let record = std::fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let whole = std::fs::read(&record).unwrap();
    type Damage<'a> = (&'a str, &'a dyn Fn());
    let damages: [Damage<'_>; 5] = [
        ("cut off", &|| {
            std::fs::write(&record, &whole[..whole.len() / 2]).unwrap()
        }),
        ("empty", &|| std::fs::write(&record, "").unwrap()),
        ("no text", &|| {
            std::fs::write(&record, [0xff, 0xfe]).unwrap()
        }),
        ("a dangling link", &|| {
            std::os::unix::fs::symlink("nowhere", &record).unwrap()
        }),
        ("a pipe", &|| {
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &record,
                rustix::fs::FileType::Fifo,
                0o600.into(),
                0,
            )
            .unwrap()
        }),
    ];
    for (name, damage) in damages {
        std::fs::remove_file(&record).unwrap();
        damage();
        assert!(ignored(&ground), "{name}");
        ground.ok(&["trust", "-y"]);
        assert!(!ignored(&ground), "{name}");
    }
    std::fs::remove_file(&record).unwrap();
    std::fs::create_dir(&record).unwrap();
    assert!(ignored(&ground));
    let said = words(&ground.teddy(&["trust", "-y"]));
    assert!(
        said.contains(&format!("cannot write `{}`", record.display())),
        "{said}"
    );
}

#[test]
fn nothing_needs_a_home_but_what_is_kept_there() {
    let ground = Ground::new();
    ground
        .repo
        .put(".teddy/config.yaml", "preview_command: cat\n");
    let nowhere = [("XDG_CONFIG_HOME", "/dev/null")];
    for args in [
        &["status"][..],
        &["log"],
        &["sessions"],
        &["context", "list"],
    ] {
        let output = ground.teddy_with(args, &nowhere);
        assert!(output.status.success(), "{args:?}: {}", words(&output));
    }
    let said = words(&ground.teddy_with(&["trust", "-y"], &nowhere));
    assert!(
        said.contains("cannot write `/dev/null/teddy/trust/"),
        "{said}"
    );
    let mut command = ground.repo.command(env!("CARGO_BIN_EXE_teddy"));
    let output = command
        .current_dir(ground.repo.path())
        .env_remove("HOME")
        .arg("status")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", words(&output));
}

#[test]
fn what_is_shown_for_trust_hides_nothing() {
    let ground = Ground::new();
    ground.repo.put(
        ".teddy/config.yaml",
        "# \u{1b}[8m\u{202e}\r\u{9b}2J\npreview_command: cat\n",
    );
    for args in [&["trust"][..], &["trust", "--json"]] {
        let shown = words(&ground.teddy(args));
        assert!(
            !shown.contains(['\u{1b}', '\u{202e}', '\r', '\u{9b}']),
            "{shown:?}"
        );
    }
}

#[test]
fn a_context_that_came_with_a_commit_reaches_no_page_and_no_ignored_file() {
    let ground = Ground::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    std::os::unix::fs::symlink(ground.outside(), ground.repo.path().join("out")).unwrap();
    ground
        .repo
        .put("ignored", "secret\n")
        .put("tracked", "shown\n");
    let list = format!(
        "http://127.0.0.1:{port}/x\nignored\n../outside/canary\n/etc/passwd\nout/canary\n~/x\n$HOME/x\nfile:///etc/passwd\ntracked\n"
    );
    ground.repo.put(".teddy/global.context", list);
    ground.repo.commit("a list");
    // Even if the user allows the host, an untrusted repository can't have it fetched.
    let text = words(&ground.teddy(&["context", "-c", "web.allow_hosts=[\"127.0.0.1\"]"]));
    assert!(
        text.contains("shown\n")
            && !text.contains("secret\n")
            && !text.contains("canary\n")
            && !text.contains("root:"),
        "{text}"
    );
    assert!(
        server.accept().is_err(),
        "a page of an untrusted repository was asked for"
    );
}

#[test]
fn pages_of_the_users_own_network_are_not_read() {
    let ground = Ground::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let mut wrong = Vec::new();
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "user:pw@127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.168.1.1",
        "[fe80::1]",
        "[fd00::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "\u{24fc}27.0.0.1",
        "127.0.0.1.",
    ] {
        let url = format!("http://{host}:{port}/");
        let tried = ground.execute(plan(&super::ground::read(&format!("[{url}]({url})"))));
        if !matches!(tried.code, 1 | 3) || server.accept().is_ok() {
            wrong.push(format!("{url}: {}", tried.words));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_file_whose_name_deceives_is_shown_by_its_characters() {
    let ground = Ground::new();
    ground
        .repo
        .write(".teddy/prompts/x\u{1b}[2J\u{202e}.xml", "<title>x</title>");
    let shown = ground.teddy(&["trust"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("--- .teddy/prompts/x\\u{1b}[2J\\u{202e}.xml\n"),
        "{shown}"
    );
    ground.ok(&["trust", "-y"]);
    ground
        .repo
        .write(".teddy/prompts/x\u{1b}[2J\u{202e}.xml", "<title>y</title>");
    let changed = ground.teddy(&["trust"]);
    let changed = String::from_utf8_lossy(&changed.stdout).into_owned();
    assert!(
        changed.contains("\\u{1b}[2J\\u{202e}.xml\n") && !changed.contains('\u{1b}'),
        "{changed}"
    );
}

#[test]
fn a_page_that_the_converter_panics_on_ends_no_command() {
    let ground = Ground::new();
    let paragraph = "<p>enough text, and more of it, to be the main part of the page</p>".repeat(9);
    let page = format!("<article>{paragraph}<iframe title='日本 youtube.com'></iframe></article>");
    let server = Fake::answering(&[format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{page}",
        page.len()
    )]);
    let address = format!("{}/x", server.origin);
    ground.ok(&["context", "add", &address]);
    let input = ground.ok(&["context", "-c", "web.allow_hosts=[\"127.0.0.1\"]"]);
    let expected = "the page cannot be used: its HTML cannot be converted ---\n";
    assert!(input.contains(expected), "{input}");
}
