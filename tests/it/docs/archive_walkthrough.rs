//! The walkthrough of bundles: its commands are run, and what they print is what the page shows.

use crate::docs::land_walkthrough::check;
use crate::plans::{edit, execute, plan};
use crate::support::TestRepo;

/// Makes a project, and beside it a plan that greets people by name.
pub fn greeting() -> TestRepo {
    let repo = TestRepo::new().file("greet.sh", "echo 'Hello!'\n");
    repo.commit("Greet");
    repo.write(".teddy/global.context", "greet.sh\n");
    let actions = [
        edit("greet.sh", "echo 'Hello!'", "echo \"Hello, $1!\""),
        execute("sh greet.sh Ada"),
    ];
    let text = plan("Greet people by name", &actions);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
    repo
}

#[test]
fn what_the_page_shows_is_what_the_commands_print() {
    check(
        &greeting(),
        include_str!("../../../docs/walkthroughs/archive.md"),
    );
}
