//! Screenshots of `teddy browse` in the documentation, drawn from the real program's screen.

use super::{Frame, keep, svg};
use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

/// Columns and rows.
const SIZE: (u16, u16) = (104, 16);
/// Alternative text.
const TITLE: &str = "A terminal: sessions with their branches and turns to the left, what a turn changed to the right";

/// Two of its sessions have several turns.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("greet.sh", "#!/bin/sh\necho \"Hello!\"\n");
    repo.commit("Say hello");
    repo.done(&["new", "greet-by-name"]);
    repo.done(&["context", "add", "greet.sh"]);
    let by_name = edit(
        "greet.sh",
        "echo \"Hello!\"",
        "echo \"Hello, ${1:-world}!\"",
    );
    repo.run_plan(&plan(
        "Write the test first",
        &[create(
            "test.sh",
            "test \"$(sh greet.sh Ada)\" = 'Hello, Ada!'\n",
        )],
    ));
    repo.run_plan(&plan(
        "Greet by name",
        &[by_name, execute("sh greet.sh Ada")],
    ));
    repo.run_plan(&plan(
        "Say how it is used",
        &[create("README.md", "# greet\n")],
    ));
    repo.done(&["branch", "2", "in-every-language"]);
    let languages = create("languages", "en Hello\nde Hallo\nfr Bonjour\n");
    repo.run_plan(&plan("List the languages", &[languages]));
    repo.done(&["switch", "greet-by-name"]);
    repo.done(&["restore", "@", "--exact", "-y"]);
    repo.done(&["undo"]);
    repo.done(&["redo"]);
    repo.done(&["land", "-m", "Greet people by their name"]);
    repo
}

#[test]
fn the_picture_of_the_browser_shows_what_it_prints() {
    let repo = project();
    let mut terminal = Screen::open(&repo, SIZE, &["browse"]);
    terminal.wait_for("Write the test first");
    terminal.press("/by name\r");
    terminal.wait_for("turn with `by name`");
    while !terminal.shown().contains("›    2 ✓") {
        terminal.press("j");
        terminal.settled();
    }
    terminal.press("d");
    terminal.wait_for("+echo");
    terminal.settled();

    let frame = Frame {
        at: 0,
        screen: terminal.screen().clone(),
    };
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), 0);
    let picture = svg::draw(std::slice::from_ref(&frame), SIZE, TITLE);
    keep("browse.svg", &picture, &frame.screen);
}
