//! The walkthrough of looking at sessions: its commands are run, and what they print is what the
//! page shows.

use crate::land_walkthrough::check;
use crate::plans::{edit, execute, plan};
use crate::support::TestRepo;

#[test]
fn what_the_page_shows_is_what_the_commands_print() {
    let repo = TestRepo::new().file("greet.sh", "echo 'Hello!'\n");
    repo.commit("Greet");
    repo.write(".teddy/global.context", "greet.sh\n");
    let actions = [
        edit("greet.sh", "echo 'Hello!'", "echo \"Hello, $1!\""),
        execute("sh greet.sh Ada"),
    ];
    let text = plan("Greet people by name", &actions);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
    check(&repo, include_str!("../../docs/walkthroughs/looking.md"));
}
