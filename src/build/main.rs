//! The build script: says which commit the programs are built from and how they are linked, and
//! makes the tables with which they count tokens.
//!
//! Nothing here depends on the time of day or on the machine.
#![expect(
    clippy::print_stdout,
    reason = "cargo reads what a build script prints"
)]

mod classes;
mod commit;
#[path = "../model/token/layout.rs"]
mod layout;
mod place;
mod vocabulary;

use std::fs;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/build");
    println!("cargo::rerun-if-changed=src/model/token/layout.rs");
    commit::say();
    place::say();
    write("classes.bin", &classes::table());
    write("tokens.bin", &vocabulary::table());
}

/// Writes a table where the program includes it from.
fn write(name: &str, table: &[u8]) {
    let folder = commit::variable("OUT_DIR").expect("cargo says where to write");
    let path = PathBuf::from(folder).join(name);
    fs::write(&path, table).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}
