//! Caches of build tools: the user's can be read, and what commands write goes elsewhere.
//!
//! What is in a cache runs later: interpreters of hooks, compiled modules, packages. Whoever
//! could write it would run outside of the sandbox the next time that the user builds. So
//! commands get a cache folder of their own for each repository, in which links lead to what the
//! user's has; tools that must write there start from nothing.

use std::io;
use std::path::{Path, PathBuf};

use crate::host::file::make_folders;
use crate::host::sandbox::Network;
use crate::host::{clock, env};

/// Caches that are not linked, because their tools fail or forget everything if they cannot write:
/// what compilers made, and what is fetched again.
const OWN: [&str; 14] = [
    "bazel",
    "ccache",
    "clangd",
    "dune",
    "go-build",
    "golangci-lint",
    "gopls",
    "nix",
    "pip",
    "sccache",
    "staticcheck",
    "uv",
    "yarn",
    "zig",
];

/// Makes the folder, or brings it up to date: a link for each of the user's caches, but for ours
/// and for those that its tool must write. `opened` are folders that commands may write anyway.
///
/// # Errors
/// The folder cannot be made.
pub(super) fn prepare(folder: &Path, opened: &[PathBuf]) -> io::Result<()> {
    make_folders(folder)?;
    // Says to `gc` when a command could last use it.
    std::fs::File::open(folder)?.set_modified(clock::now().timestamp().into())?;
    let entries = env::cache_home()
        .and_then(|caches| std::fs::read_dir(caches).ok())
        .into_iter()
        .flatten()
        .flatten();

    for entry in entries {
        let name = entry.file_name();
        let is_own = OWN.iter().any(|own| *own == name);
        let is_opened = opened.iter().any(|folder| *folder == entry.path());
        if name != "teddy" && (is_opened || !is_own) {
            // There already, mostly; or a command has put something in its place, which is its own
            // loss.
            let _ = std::os::unix::fs::symlink(entry.path(), folder.join(name));
        }
    }

    Ok(())
}

/// Returns the variables that lead tools there; none if no variable can name it. Without a network
/// what the user has is all that there is, so that only what compilers make goes there.
pub(super) fn variables(folder: &Path, network: Network) -> Vec<(String, String)> {
    let Some(folder) = folder.to_str() else {
        return Vec::new();
    };
    let made = [
        ("XDG_CACHE_HOME", ""),
        // Would take `~/.ccache` where that is there.
        ("CCACHE_DIR", "/ccache"),
    ];
    let fetched = match network {
        Network::On => &[("npm_config_cache", "/npm"), ("GOMODCACHE", "/go-mod")][..],
        Network::Off => &[],
    };

    let all = made.iter().chain(fetched);
    all.map(|(name, below)| ((*name).to_owned(), format!("{folder}{below}")))
        .collect()
}
