//! Updates refs in one transaction of `git update-ref`.
//!
//! All refs share one lock file, `tables.list.lock`. If git is killed, the file stays, and neither
//! TeDDy nor the user's git can update any ref. So TeDDy also holds a lock of its own, which git
//! inherits. If that lock was abandoned, no git of ours is running, and a remaining
//! `tables.list.lock` is ours to remove.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use gix::bstr::ByteSlice as _;

use super::{Reftable, full_name, tables};
use crate::git::refs::store::{Expected, RefMove, RefsLocked};
use crate::host::clock;
use crate::host::lock::{Lock, patience};

const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(10);

/// Parts of git's messages if another process has the lock or won the race.
const LOCKED_MESSAGES: [&str; 3] = [
    "cannot lock references",
    "data is locked",
    "data concurrently modified",
];

/// Settings for git: flush tables before they are listed; wait for the lock (since git 2.48).
const UPDATE_SETTINGS: [&str; 3] = [
    "core.fsync=reference",
    "core.fsyncMethod=fsync",
    "reftable.lockTimeout=2000",
];

pub(super) fn transact(refs: &Reftable, script: &[u8], log: &str) -> anyhow::Result<()> {
    let refs_lock = Lock::take_uninterrupted(&lock_dir(refs), "moving refs", patience())?;
    // The previous holder was killed, so a lock that git left is stale.
    if refs_lock.holder_crashed {
        refs.unlock()?;
    }

    // Tables of the user's git are possibly not flushed, and the new list will name them too.
    refs.flush()?;

    let started = Instant::now();
    loop {
        let output = spawn_update_ref(refs, script, log, &refs_lock)?.wait_with_output();
        let output = output.context("waiting for git update-ref")?;
        if output.status.success() {
            // Despite `core.fsync`: git 2.47 writes the footer after it has flushed the table.
            return refs.flush();
        }

        let stderr = String::from_utf8_lossy(&output.stderr);
        let is_locked = LOCKED_MESSAGES.iter().any(|part| stderr.contains(part));
        if is_locked && started.elapsed() < LOCK_TIMEOUT {
            std::thread::sleep(LOCK_POLL);
            continue;
        }

        let lock = tables::lock(&refs.common);
        if is_locked && lock.exists() {
            return Err(RefsLocked { lock }.into());
        }

        anyhow::bail!("git update-ref failed: {}", stderr.trim());
    }
}

fn spawn_update_ref(
    refs: &Reftable,
    script: &[u8],
    log: &str,
    lock: &Lock,
) -> anyhow::Result<Child> {
    let mut command = refs.git()?;
    let seconds = clock::now().timestamp().as_second();
    command
        .env("GIT_COMMITTER_NAME", "TeDDy")
        .env("GIT_COMMITTER_EMAIL", "teddy@localhost")
        .env("GIT_COMMITTER_DATE", format!("@{seconds} +0000"));
    for setting in UPDATE_SETTINGS {
        command.args(["-c", setting]);
    }

    command.args(["update-ref", "--stdin", "-z", "--create-reflog", "-m", log]);
    command
        .stdin(Stdio::piped())
        // git keeps our lock held until it ends, even if this process is killed.
        .stdout(lock.share().context("sharing the lock of the refs")?)
        .stderr(Stdio::piped())
        // Ctrl-c must not stop git between two refs; this process decides when to stop.
        .process_group(0);
    let mut child = command.spawn().context("starting git update-ref")?;

    if let Some(mut stdin) = child.stdin.take() {
        // git stops reading at an invalid command and reports it.
        let _ = stdin.write_all(script);
    }

    Ok(child)
}

/// Returns the directory of the lock that every update of refs holds.
pub(super) fn lock_dir(refs: &Reftable) -> PathBuf {
    refs.common.join("teddy").join("refs")
}

pub(super) fn move_script(moves: &[RefMove<'_>]) -> anyhow::Result<Vec<u8>> {
    let mut orders = String::new();
    for RefMove { name, expected, to } in moves {
        full_name(name.as_bytes().as_bstr())?;
        let order = match expected {
            Expected::Absent => format!("create {name}\0{to}\0"),
            Expected::At(old) => format!("update {name}\0{to}\0{old}\0"),
            Expected::Any => format!("update {name}\0{to}\0\0"),
        };
        orders.push_str("option no-deref\0");

        orders.push_str(&order);
    }

    Ok(wrap_transaction(&orders))
}

pub(super) fn delete_script(name: &str, expected: Expected) -> anyhow::Result<Vec<u8>> {
    full_name(name.as_bytes().as_bstr())?;
    let old = match expected {
        Expected::At(old) => old.to_string(),
        Expected::Absent | Expected::Any => String::new(),
    };
    Ok(wrap_transaction(&format!(
        "option no-deref\0delete {name}\0{old}\0"
    )))
}

pub(super) fn deleting_all(names: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut orders = String::new();
    for name in names {
        full_name(name.as_bytes().as_bstr())?;
        orders.push_str(&format!("option no-deref\0delete {name}\0\0"));
    }
    Ok(wrap_transaction(&orders))
}

fn wrap_transaction(orders: &str) -> Vec<u8> {
    format!("start\0{orders}prepare\0commit\0").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_says_what_each_ref_must_be() {
        let one = "1".repeat(40).parse().unwrap();
        let two = "2".repeat(40).parse().unwrap();
        let ref_move = |name, expected| RefMove {
            name,
            expected,
            to: two,
        };
        let moves = [
            ref_move("refs/teddy/a", Expected::Absent),
            ref_move("refs/teddy/b", Expected::At(one)),
            ref_move("refs/teddy/c", Expected::Any),
        ];
        let script = String::from_utf8(move_script(&moves).unwrap()).unwrap();
        let expected = format!(
            "start|option no-deref|create refs/teddy/a|{two}|option no-deref|update \
             refs/teddy/b|{two}|{one}|option no-deref|update refs/teddy/c|{two}||prepare|commit|"
        );
        assert_eq!(script.replace('\0', "|"), expected);
    }

    #[test]
    fn a_name_cannot_be_an_order() {
        let to = "1".repeat(40).parse().unwrap();
        for name in ["refs/teddy/a\0delete refs/heads/main", "refs/teddy/a b", ""] {
            let expected = Expected::Any;
            move_script(&[RefMove { name, expected, to }]).unwrap_err();
            delete_script(name, expected).unwrap_err();
        }
    }
}
