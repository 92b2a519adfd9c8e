//! The build script: determines the commit and the linker arguments, and generates the tables for
//! counting tokens.
//!
//! The output does not depend on the time or the machine.
#![expect(
    clippy::print_stdout,
    reason = "cargo reads what a build script prints"
)]

mod classes;
mod commit;
#[path = "../model/token/layout.rs"]
mod layout;
mod link_args;
mod vocabulary;

use std::fs;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/build");
    println!("cargo::rerun-if-changed=src/model/token/layout.rs");
    commit::emit();
    link_args::emit();
    write("classes.bin", &classes::table());
    write("tokens.bin", &vocabulary::table());
}

fn write(name: &str, table: &[u8]) {
    let dir = commit::variable("OUT_DIR").expect("cargo says where to write");
    let path = PathBuf::from(dir).join(name);
    fs::write(&path, table).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}
