//! Ignored and untracked secrets that commands do not see, in an overlay and in a copy.

use super::ground::{Ground, plan, run};
use crate::support::overlay::overlays;

/// Ignored files that are secrets by name.
const NAMED: &str = "
    credentials.json config/secrets.yml terraform.tfvars terraform.tfstate .git-credentials
    .aws/credentials .docker/config.json .kube/config kubeconfig .htpasswd id_rsa.bak deploy_rsa
    .netrc .pypirc .npmrc .pgpass .my.cnf .vault-token config/master.key my-service-account.json
    a.p12 a.pfx a.jks a.keystore a.kdbx target/.env deep/er/secrets.toml
    node_modules/x/.env node_modules/@y/z/id_rsa .venv/lib/server.key
";
/// Ignored files without the name of a secret, with a key in them.
const KEYED: &str = "local.py data/notes.txt deep/er/settings";
/// Ignored files that commands need: dependencies, and files without a secret.
const VISIBLE: &str =
    "node_modules/x/index.js target/built .venv/lib/a.py data/plain.txt config.json";
/// Tracked files that are secrets by name or content.
const TRACKED: &str = "tests/credentials.json tests/key.pem tests/token.txt";

/// A token with the shape of GitHub's.
fn key() -> String {
    format!(
        "token = \"ghp_{}\" # hunter2\n",
        "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2)
    )
}

fn ground() -> Ground {
    let ground = Ground::new();
    for path in TRACKED.split_whitespace() {
        ground.repo.put(path, key().replace("hunter2", "fixture"));
    }
    ground.repo.git(&["add", "-f", "tests"]);
    ground.repo.git(&["commit", "-qm", "fixtures"]);
    ground.repo.put(".gitignore", "*\n");
    for path in NAMED.split_whitespace() {
        ground.repo.put(path, "hunter2\n");
    }
    for path in KEYED.split_whitespace() {
        ground.repo.put(path, key());
    }
    for path in VISIBLE.split_whitespace() {
        ground.repo.put(path, "needed\n");
    }
    // Scanning dependencies would cost time, and tests need them.
    ground.repo.put(
        "node_modules/x/index.js",
        key().replace("hunter2", "needed"),
    );
    ground
}

/// Returns the report of a command that reads every file.
fn reads(ground: &Ground, more: &[&str]) -> String {
    let script = "find -L . -path ./.git -prune -o -type f -print | sort | while read f; do echo \"$f: $(tail -n 1 \"$f\")\"; done";
    let args = [&["-c", "execute.output_limit=1000"][..], more].concat();
    let tried = ground.execute_with(plan(&run(script)), &args);
    assert_eq!(tried.code, 0, "{}", tried.words);
    ground.ok(&["show", "@", "output/01.txt"])
}

/// Regression: a command read the secrets in the dependencies to which a copy links.
#[test]
fn ignored_secrets_are_hidden_and_what_commands_need_is_not() {
    let ground = ground();
    for backend in ["checkout", "overlay"] {
        if backend == "overlay" && !overlays() {
            continue;
        }
        let seen = reads(&ground, &["-c", &format!("worktree.backend={backend}")]);
        assert!(!seen.contains("hunter2"), "{backend}: {seen}");
        for path in TRACKED.split_whitespace() {
            assert!(seen.contains(path), "{backend}, {path}: {seen}");
        }
        for path in VISIBLE.split_whitespace() {
            let is_dependency = path.starts_with("node_modules") || path.starts_with(".venv");
            if backend == "checkout" && !is_dependency {
                continue;
            }
            assert!(seen.contains(&format!("{path}:")), "{path}: {seen}");
        }
    }
}

#[test]
fn a_hidden_file_appears_again_once_its_key_is_gone_or_the_user_names_it() {
    if !overlays() {
        return;
    }
    let ground = ground();
    let overlay = ["-c", "worktree.backend=overlay"];
    let named = [&overlay[..], &["-c", "worktree.copy=[local.py, .netrc]"]].concat();
    assert!(!reads(&ground, &overlay).contains("local.py"));
    let seen = reads(&ground, &named);
    assert!(
        seen.contains("local.py:") && seen.contains(".netrc:"),
        "{seen}"
    );
    assert!(!seen.contains("data/notes.txt"), "{seen}");

    ground.repo.put("local.py", "no key\n");
    assert!(reads(&ground, &overlay).contains("local.py: no key"));
    ground.repo.put("config.json", key());
    assert!(!reads(&ground, &overlay).contains("config.json"));
}

/// Regression: a link with the name of a directory of dependencies opened what it leads to.
#[test]
fn an_ignored_link_opens_neither_private_directories_nor_the_project() {
    let ground = ground();
    let home = ground.repo.beside("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id_test"), "hunter2\n").unwrap();
    let link = |target: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(target, ground.repo.path().join(name)).unwrap();
    };
    link(&home.join(".ssh"), "vendor");
    link(&ground.repo.path(), "venv");
    link(&ground.repo.path().join(".git"), "deps");
    let script =
        "cat vendor/id_test venv/.netrc venv/a.p12 deps/config; ls -L vendor/ venv/ deps/; true";
    for backend in ["worktree.backend=checkout", "worktree.backend=overlay"] {
        let tried = ground.execute_with(plan(&run(script)), &["-c", backend]);
        assert_eq!(tried.code, 0, "{}", tried.words);
        let seen = ground.ok(&["show", "@", "output/01.txt"]);
        assert!(!seen.contains("hunter2"), "{backend}: {seen}");
        let is_hidden = !seen.contains("repositoryformatversion");
        assert!(is_hidden || backend.ends_with("overlay"), "{seen}");
    }
}
