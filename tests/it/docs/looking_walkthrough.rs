//! Runs the commands of the walkthrough of views and compares their output with the page.

use crate::docs::archive_walkthrough::greeting;
use crate::docs::land_walkthrough::check;

#[test]
fn what_the_page_shows_is_what_the_commands_print() {
    let page = include_str!("../../../docs/walkthroughs/looking.md");
    check(&greeting(page), page);
}
