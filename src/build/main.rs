//! The build script: determines the commit and the linker arguments, and generates the tables for
//! counting tokens.
//!
//! The output does not depend on the time or the machine.
#![expect(
    clippy::print_stdout,
    reason = "cargo reads what a build script prints"
)]

mod commit;
#[path = "../model/token/layout.rs"]
mod layout;
mod vocabulary;

use std::fs;
use std::path::PathBuf;

use commit::variable;

fn main() {
    println!("cargo::rerun-if-changed=src/build");
    println!("cargo::rerun-if-changed=src/model/token/layout.rs");
    commit::emit();
    emit_link_args();
    write("classes.bin", &vocabulary::class_table());
    write("tokens.bin", &vocabulary::trie_table());
}

fn write(name: &str, table: &[u8]) {
    let dir = variable("OUT_DIR").expect("cargo says where to write");
    let path = PathBuf::from(dir).join(name);
    fs::write(&path, table).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

/// Passes the linker arguments to cargo: to fixed addresses, where that is known to work
/// (docs/decisions/0003-releases.md). Without fixed addresses, the loader relocates 70,000
/// addresses at each start (250,000 in a debug build), which doubles the time of `teddy --version`.
fn emit_link_args() {
    println!("cargo::rerun-if-env-changed=TEDDY_PIE");
    let is = |name: &str, value: &str| variable(name).is_some_and(|actual| actual == value);
    let features = variable("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let is_static = features.split(',').any(|feature| feature == "crt-static");
    let is_known = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if !is_known || is_static || variable("TEDDY_PIE").is_some() {
        return;
    }

    println!("cargo::rustc-link-arg-bins=-no-pie");
    if is("PROFILE", "release") {
        // Releases do not unwind (docs/decisions/0003-releases.md): no table of where to.
        println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    }
}
