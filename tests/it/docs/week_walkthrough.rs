//! Runs the commands of the walkthrough of a week and compares their output with the page.

use crate::docs::land_walkthrough::check;
use crate::plans::{edit, plan};
use crate::support::TestRepo;

/// Returns the repository at the start of the page, with the answers of its model.
fn repository() -> TestRepo {
    let repo = TestRepo::new()
        .file("greet.sh", "echo 'Hello!'\n")
        .file("notes.txt", "one\ntwo\n");
    repo.commit("Greet");
    let (plain, named, world, loud) = (
        "echo 'Hello!'",
        "echo \"Hello, $1!\"",
        "echo \"Hello, ${1:-world}!\"",
        "echo \"HELLO, ${1:-world}!\"",
    );
    let change = |title: &str, from, to| plan(title, &[edit("greet.sh", from, to)]);
    repo.reply(&change("Greet people by name", plain, named))
        .reply("Without an argument, it prints `Hello, !`.")
        .reply(&change("Greet the world without a name", named, world))
        .reply(&change("Shout", world, loud));
    repo
}

#[test]
fn what_the_page_shows_is_what_the_commands_print() {
    check(
        &repository(),
        include_str!("../../../docs/walkthroughs/week.md"),
    );
}
