//! How the programs are linked: to fixed addresses, where that is known to work
//! (docs/decisions/0003-releases.md).

use crate::commit::variable;

/// Passes the linker arguments to cargo. Without fixed addresses, the loader relocates 70,000
/// addresses at each start (250,000 in a debug build), which doubles the time of `teddy --version`.
pub fn emit() {
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
