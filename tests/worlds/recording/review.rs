//! Pictures of a review in the documentation, drawn from the real program's screen: comments on an
//! agent's turn, and the next review, which follows them and names damage.

use super::{Frame, keep, svg};
use crate::screen::Screen;
use crate::scripted_agent::use_scripted_agent;
use crate::support::TestRepo;

/// Columns and rows.
const SIZE: (u16, u16) = (100, 34);

/// The agent misreads the encoding of `legacy.ini`.
const FIRST: &str = r#"printf 'fn load(path: &str) -> Result<Config> {\n    let text = read(path).unwrap();\n    parse(&text)\n}\n' > src/config.rs
printf '#[test]\nfn loads() {\n    load("a.toml");\n}\n' > tests/config.rs
printf 'name = caf\357\277\275\nport = 8080\n' > legacy.ini
message 'Load the configuration from a file.'"#;

const SECOND: &str = r#"printf 'fn load(path: &str) -> Result<Config> {\n    let text = read(path)?;\n    parse(&text)\n}\n' > src/config.rs
printf '#[test]\nfn loads() {\n    load("a.toml").unwrap();\n    load("none").unwrap_err();\n}\n' > tests/config.rs
printf 'name = caf\357\277\275\nport = 8080\n' > legacy.ini
message 'Return the error, and test it.'"#;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(
            "src/config.rs",
            "fn load() -> Config {\n    Config::default()\n}\n",
        )
        .file("tests/config.rs", "#[test]\nfn loads() {\n    load();\n}\n")
        .file("legacy.ini", b"name = caf\xe9\nport = 80\n");
    repo.commit("base");
    repo.done(&["new", "configuration"]);
    repo
}

/// Draws the screen.
fn picture(screen: &Screen, name: &str, title: &str) {
    let frame = Frame {
        at: 0,
        screen: screen.screen().clone(),
    };
    let picture = svg::draw(std::slice::from_ref(&frame), SIZE, title);
    keep(name, &picture, &frame.screen);
}

#[test]
fn pictures_of_the_review_match_the_program() {
    let repo = project();
    use_scripted_agent(&repo, FIRST);
    repo.done(&["plan", "-m", "load the configuration from a file"]);
    let mut screen = Screen::open(&repo, SIZE, &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("c");
    screen.wait_for("c comment · s decline");
    for (line, comment) in [
        ("+    let text", "Return the error instead."),
        ("+    load(", "Test a missing file, too."),
    ] {
        screen.press(&format!("/{line}\r"));
        screen.settled();
        screen.press("c");
        screen.wait_for("Your comment:");
        screen.press(&format!("{comment}\r"));
        screen.wait_for(&format!(": {comment}"));
        screen.settled();
    }
    picture(
        &screen,
        "review-comments.svg",
        "A terminal: the differences of an agent's turn, with comments below their lines",
    );
    use_scripted_agent(&repo, SECOND);
    screen.press("s");
    screen.wait_for("your comment on src/config.rs:2");
    screen.wait_for_prompt("(q)uit ›");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());

    // On a fresh screen.
    let mut screen = Screen::open(&repo, SIZE, &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.settled();
    picture(
        &screen,
        "review-damage.svg",
        "A terminal: the next review says that both comments are addressed, and that a file lost its encoding",
    );
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}
