//! Provides confined commands with caches of build tools: the user's can be read, and writes go to
//! separate ones.
//!
//! Cache content is executed later: hook interpreters, compiled modules, packages. A command that
//! could write to the user's caches would run code outside the sandbox at the user's next build. So
//! each repository has a cache directory for its commands, with symlinks to the user's caches.
//! Tools that must write to their cache start with an empty one.

use std::io;
use std::path::{Path, PathBuf};

use crate::host::file::make_dirs;
use crate::host::sandbox::Network;
use crate::host::{clock, env};

/// Caches without a symlink, because their tools fail or lose all state if they cannot write:
/// compiler output, and what can be downloaded again.
const UNLINKED_CACHES: [&str; 14] = [
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

/// Creates or updates the directory. `opened` lists caches that commands can write to anyway; they
/// are linked too.
pub(super) fn prepare_caches(dir: &Path, opened: &[PathBuf]) -> io::Result<()> {
    make_dirs(dir)?;
    // Says to `gc` when a command could last use it.
    std::fs::File::open(dir)?.set_modified(clock::now().timestamp().into())?;
    let entries = env::cache_home()
        .and_then(|caches| std::fs::read_dir(caches).ok())
        .into_iter()
        .flatten()
        .flatten();

    for entry in entries {
        let name = entry.file_name();
        let is_own = UNLINKED_CACHES.iter().any(|own| *own == name);
        let is_opened = opened.iter().any(|other| *other == entry.path());
        if name != "teddy" && (is_opened || !is_own) {
            // It usually exists. If a command has replaced the link, only commands see that.
            let _ = std::os::unix::fs::symlink(entry.path(), dir.join(name));
        }
    }

    Ok(())
}

/// Environment variables that point tools to the directory.
pub(super) fn cache_dir_variables(dir: &Path, network: Network) -> Vec<(String, String)> {
    let Some(dir) = dir.to_str() else {
        return Vec::new();
    };
    let own_caches = [
        ("XDG_CACHE_HOME", ""),
        // ccache prefers an existing `~/.ccache` to `XDG_CACHE_HOME`.
        ("CCACHE_DIR", "/ccache"),
    ];
    let fetched = match network {
        Network::On => &[("npm_config_cache", "/npm"), ("GOMODCACHE", "/go-mod")][..],
        // Without network an empty cache could not be filled, so packages are read from the user's.
        Network::Off => &[],
    };

    let all = own_caches.iter().chain(fetched);
    all.map(|(name, suffix)| ((*name).to_owned(), format!("{dir}{suffix}")))
        .collect()
}
