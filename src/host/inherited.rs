//! Which variables of the environment and which open files a child process inherits.
//!
//! A program that a plan, a model or the configuration chose gets the variables of a list, and
//! those that the user passes on by name. A program that the user opens by hand, such as an editor,
//! gets everything but secrets. git, and what it starts, gets the whole environment. No command
//! gets a file that TeDDy has open or inherited: an open file is not subject to the sandbox.

use std::process::Command;

use super::env;
use crate::text::secret;

/// What a program does, as far as it decides about its variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildKind {
    /// Runs commands of a plan, or searches.
    Tool,
    /// Answers as a model, or edits files as an agent. Gets the settings of such programs, too.
    Model,
}

/// Variables that tell a program about the user, the terminal and the machine.
const GENERAL: &[&str] = &[
    "ALL_PROXY",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "CURL_CA_BUNDLE",
    "EDITOR",
    "EMAIL",
    "FORCE_COLOR",
    "FTP_PROXY",
    "HOME",
    "HOSTNAME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "INFOPATH",
    "LANG",
    "LANGUAGE",
    "LESS",
    "LINES",
    "LOGNAME",
    "MANPATH",
    "NIX_PATH",
    "NIX_PROFILES",
    "NIX_SSL_CERT_FILE",
    "NO_COLOR",
    "NO_PROXY",
    "PAGER",
    "PATH",
    "PWD",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SHLVL",
    "SOURCE_DATE_EPOCH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TMP",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "USER",
    "VISUAL",
];

/// Variables of compilers, interpreters, package managers and test runners.
const TOOLCHAIN: &[&str] = &[
    "ACLOCAL_PATH",
    "AR",
    "AS",
    "BUNDLE_GEMFILE",
    "BUNDLE_JOBS",
    "BUNDLE_PATH",
    "BUNDLE_WITHOUT",
    "BUN_INSTALL",
    "CC",
    "CCACHE_DIR",
    "CFLAGS",
    "CLASSPATH",
    "COMPOSER_CACHE_DIR",
    "COMPOSER_HOME",
    "CONFIG_SITE",
    "CPATH",
    "CPP",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "CYPRESS_CACHE_FOLDER",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "DENO_DIR",
    "DENO_INSTALL",
    "DEVELOPER_DIR",
    "DJANGO_SETTINGS_MODULE",
    "FC",
    "FFLAGS",
    "GEM_HOME",
    "GEM_PATH",
    "GOARCH",
    "GOBIN",
    "GOCACHE",
    "GOENV",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GOMAXPROCS",
    "GOMODCACHE",
    "GONOPROXY",
    "GONOSUMDB",
    "GOOS",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "GRADLE_HOME",
    "GRADLE_OPTS",
    "GRADLE_USER_HOME",
    "HEX_HOME",
    "LD",
    "LDFLAGS",
    "LDLIBS",
    "LD_LIBRARY_PATH",
    "LIBCLANG_PATH",
    "LIBRARY_PATH",
    "LIBS",
    "M2_HOME",
    "MACOSX_DEPLOYMENT_TARGET",
    "MAKE",
    "MAKEFLAGS",
    "MIX_ENV",
    "MIX_HOME",
    "NM",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NUGET_PACKAGES",
    "NUMBER_OF_PROCESSORS",
    "OBJCOPY",
    "OPENSSL_DIR",
    "PERL5LIB",
    "PERL5OPT",
    "PERL_LOCAL_LIB_ROOT",
    "PERL_MB_OPT",
    "PERL_MM_OPT",
    "PKG_CONFIG",
    "PKG_CONFIG_LIBDIR",
    "PKG_CONFIG_PATH",
    "PKG_CONFIG_SYSROOT_DIR",
    "PLAYWRIGHT_BROWSERS_PATH",
    "PNPM_HOME",
    "PRE_COMMIT_HOME",
    "PROTOC",
    "PUPPETEER_CACHE_DIR",
    "RACK_ENV",
    "RAILS_ENV",
    "RANLIB",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "R_HOME",
    "R_LIBS",
    "R_LIBS_USER",
    "SBT_OPTS",
    "SCCACHE_DIR",
    "SDKROOT",
    "STACK_ROOT",
    "STRIP",
    "TARGET",
    "TOX_ENV_DIR",
    "VIRTUAL_ENV",
    "VIRTUAL_ENV_PROMPT",
    "WORKON_HOME",
    "_JAVA_OPTIONS",
];

/// Beginnings of the names of further ones.
const TOOLCHAINS: &[&str] = &[
    "ANDROID_",
    "ASDF_",
    "CABAL_",
    "CARGO_",
    "CGO_",
    "CMAKE_",
    "CONDA_",
    "COREPACK_",
    "COURSIER_",
    "DOTNET_",
    "FLASK_",
    "FNM_",
    "GHCUP_",
    "HOMEBREW_",
    "INSTA_",
    "JAVA_",
    "JDK_",
    "JULIA_",
    "KOTLIN_",
    "LC_",
    "MAVEN_",
    "MISE_",
    "MSBUILD",
    "NEXTEST_",
    "NPM_CONFIG_",
    "NVM_",
    "OPAM",
    "PHP_",
    "PIPX_",
    "PIP_",
    "POETRY_",
    "PROPTEST_",
    "PYENV_",
    "PYTEST_",
    "PYTHON",
    "RBENV_",
    "RUBY",
    "RUSTUP_",
    "RUST_",
    "SDKMAN_",
    "SWIFT_",
    "UV_",
    "VOLTA_",
    "XDG_",
    "YARN_",
    "ZIG_",
];

/// Beginnings of the names that describe the user to git, and no repository.
const GIT: &[&str] = &[
    "GIT_ATTR_NOSYSTEM",
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
];

/// Beginnings of the names of settings of model programs and agents. Their keys are secrets by name.
const MODELS: &[&str] = &[
    "AIDER_",
    "AMP_",
    "ANTHROPIC_",
    "AWS_",
    "AZURE_",
    "CLAUDE_",
    "CODEX_",
    "COPILOT_",
    "CRUSH_",
    "CURSOR_",
    "GEMINI_",
    "GOOGLE_",
    "GOOSE_",
    "KIMI_",
    "LLM_",
    "OLLAMA_",
    "OPENAI_",
    "OPENCODE_",
    "QWEN_",
    "VERTEX_",
];

/// Parts of names that suggest a secret.
const SECRET: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
];
/// Words of names, between underscores, that suggest a secret.
const SECRET_WORDS: &[&str] = &[
    "AUTH", "COOKIE", "CREDS", "DSN", "PASS", "PAT", "PGPASS", "PWD",
];
/// Beginnings of the names of secrets of password managers.
const SECRET_STARTS: &[&str] = &["BW_SESSION", "OP_SESSION"];
/// Harmless names that contain one of them: of the shell, the desktop and git.
const HARMLESS: &[&str] = &["OLDPWD", "PWD", "SSH_AUTH_SOCK"];
const HARMLESS_STARTS: &[&str] = &["GIT_CONFIG_KEY_", "GNOME_KEYRING_", "XDG_SESSION_"];

fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(&name.to_ascii_uppercase())
        || has_password(value)
        || has_password_option(value)
        || secret::find_secret(value).is_some()
}

/// Returns whether a name in capitals with underscores is that of a secret.
pub fn is_secret_name(name: &str) -> bool {
    if HARMLESS.contains(&name) || HARMLESS_STARTS.iter().any(|start| name.starts_with(start)) {
        return false;
    }
    SECRET.iter().any(|part| name.contains(part))
        || SECRET_STARTS.iter().any(|start| name.starts_with(start))
        || name.split('_').any(|word| SECRET_WORDS.contains(&word))
}

/// Returns whether a text has an address with a password, as in `postgres://me:word@host`. Of a page,
/// a user alone counts, too: registries take a token there (`https://token@host`).
fn has_password(value: &str) -> bool {
    let addresses = value
        .match_indices("://")
        .map(|(at, mark)| (&value[..at], &value[at + mark.len()..]));
    addresses
        .filter_map(|(scheme, rest)| {
            let (user, _) = rest.split(['/', '?', '#', ' ']).next()?.rsplit_once('@')?;
            Some((scheme, user))
        })
        .any(|(scheme, user)| {
            let is_page = scheme.ends_with("http") || scheme.ends_with("https");
            user.contains(':') || (is_page && !user.is_empty())
        })
}

/// Returns whether a text has an option with a password, as in `-Dstore.password=word`.
fn has_password_option(value: &str) -> bool {
    let options = value
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let is_filled = |(_, value): &(&str, &str)| !value.is_empty();
    options.filter(is_filled).any(|(name, _)| {
        let name = name.to_ascii_uppercase();
        // In the name of an option, `KEY` is seldom a secret.
        let mut parts = SECRET.iter().filter(|part| **part != "KEY");
        parts.any(|part| name.contains(part))
    })
}

/// Returns whether a program of a kind inherits a variable without being passed it by name.
fn is_listed(kind: ChildKind, name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // The usual spelling of proxies and of npm's settings is in lower case.
    let is_any = |starts: &[&str]| starts.iter().any(|start| upper.starts_with(start));
    let is_known = GENERAL.contains(&upper.as_str())
        || TOOLCHAIN.contains(&upper.as_str())
        || is_any(TOOLCHAINS)
        || is_any(GIT)
        || (kind == ChildKind::Model && is_any(MODELS))
        || is_for_tests(&upper);
    is_known && !is_secret(name, value)
}

#[cfg(all(feature = "failpoints", debug_assertions))]
fn is_for_tests(name: &str) -> bool {
    name == "FAILPOINTS"
}

#[cfg(not(all(feature = "failpoints", debug_assertions)))]
fn is_for_tests(_: &str) -> bool {
    false
}

/// Gives a program the listed variables, and those that the user passes on by name.
pub fn give_listed(command: &mut Command, kind: ChildKind, keep: &[String]) {
    for (name, value) in env::all() {
        let (text, value_text) = (name.to_string_lossy(), value.to_string_lossy());
        if keep.iter().any(|kept| *kept == *text) {
            command.env(&name, &value);
        } else if !is_listed(kind, &text, &value_text) {
            command.env_remove(&name);
        }
    }
}

/// Takes the secrets from the environment of a program that the user opens by hand.
pub fn take_secrets(command: &mut Command) {
    for (name, value) in env::all() {
        if is_secret(&name.to_string_lossy(), &value.to_string_lossy()) {
            command.env_remove(&name);
        }
    }
}

/// Marks all descriptors except the first three close-on-exec, including inherited ones.
pub fn keep_descriptors_from_children() {
    #[cfg(target_os = "linux")]
    {
        // `close_range` exists since Linux 5.9, and `CLOSE_RANGE_CLOEXEC` since 5.11.
        if system::close_range_on_exec().is_err() {
            open().into_iter().for_each(system::close_on_exec);
        }
    }
}

#[cfg(target_os = "linux")]
fn open() -> Vec<i32> {
    let listed = std::fs::read_dir("/proc/self/fd").map(|entries| {
        let numbers = entries.flatten();
        numbers
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    });
    let all = || (0..MOST).collect::<Vec<i32>>();
    let numbers = listed.unwrap_or_else(|_| all());

    numbers.into_iter().filter(|number| *number > 2).collect()
}

// Number of descriptors to try without `/proc`.
#[cfg(target_os = "linux")]
const MOST: i32 = 1 << 16;

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    #[expect(unsafe_code, reason = "no safe crate that we use has this call")]
    pub(super) fn close_range_on_exec() -> io::Result<()> {
        // SAFETY: the call takes only numbers. With this flag it closes nothing.
        let result = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[expect(unsafe_code, reason = "the number has no owner here")]
    pub(super) fn close_on_exec(number: i32) {
        // SAFETY: `F_SETFD` takes only numbers, and fails if the descriptor is not open.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: &str, expected: [bool; 3]) {
        let actual = [
            is_listed(ChildKind::Tool, name, value),
            is_listed(ChildKind::Model, name, value),
            !is_secret(name, value),
        ];
        assert_eq!(actual, expected, "{name}={value}: tool, model, by hand");
    }

    #[test]
    fn secrets_reach_no_program() {
        for name in [
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "npm_token",
            "AWS_SECRET_ACCESS_KEY",
            "CARGO_REGISTRY_TOKEN",
            "UV_INDEX_MINE_PASSWORD",
            "npm_config__auth",
            "PGPASSWORD",
            "PGPASS",
            "DB_PASS",
            "MYSQL_PWD",
            "NPM_AUTH",
            "SENTRY_DSN",
            "BW_SESSION",
            "OP_SESSION_mine",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ] {
            check(name, "x", [false; 3]);
        }
        check("DATABASE_URL", "postgres://me:word@host/db", [false; 3]);
        check("HTTPS_PROXY", "http://me:word@proxy:8080", [false; 3]);
        check("PIP_INDEX_URL", "https://a:b@host/simple", [false; 3]);
        check("UV_INDEX_URL", "https://token@host/simple", [false; 3]);
        for options in ["-Xmx1g -Dstore.password=word", "--token=word"] {
            check("MAVEN_OPTS", options, [false; 3]);
        }
        let key = format!("ghp_{}", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
        check("NODE_OPTIONS", &key, [false; 3]);
    }

    #[test]
    fn tools_find_their_toolchain() {
        for (name, value) in [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("CARGO_HOME", "/x"),
            ("RUSTFLAGS", "-C opt-level=1"),
            ("https_proxy", "http://proxy:8080"),
            ("GOPROXY", "https://proxy,direct"),
            ("CARGO_HTTP_PROXY", "ssh://git@host/x"),
            ("GRADLE_OPTS", "-Xmx1g -Dkey=x -Dpassword="),
            ("npm_config_cache", "/x"),
            ("VIRTUAL_ENV", "/x"),
            ("PWD", "/x"),
            ("GIT_AUTHOR_NAME", "Ada"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ] {
            check(name, value, [true; 3]);
        }
    }

    #[test]
    fn what_no_list_has_reaches_editors_only() {
        for name in [
            "SSH_AUTH_SOCK",
            "DISPLAY",
            "DBUS_SESSION_BUS_ADDRESS",
            "XAUTHORITY",
            "ANYTHING",
            "GIT_DIR",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_KEY_0",
            "TEDDY_NOW",
        ] {
            check(name, "x", [false, false, true]);
        }
        check("CLAUDE_CONFIG_DIR", "/x", [false, true, true]);
        check("DATABASE_URL", "postgres://host/db", [false, false, true]);
    }
}
