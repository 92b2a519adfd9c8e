//! `sign` tags a session with a signature. `verify` reports the signer and the signed turns.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::plans::{create, edit, plan};
use crate::support::remotes::two_people;
use crate::support::{Output, TestRepo};

const SIGNED: &str = "refs/teddy/signed/demo";

fn session(init: &[&str]) -> TestRepo {
    let repo = TestRepo::with(init).file("a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "two", "2")]));
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    repo
}

/// Creates an SSH key with this passphrase. `None` without `ssh-keygen`, which git needs to sign
/// too.
fn key(repo: &TestRepo, name: &str, passphrase: &str) -> Option<PathBuf> {
    let key = repo.beside(name);
    let made = repo
        .command("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-C", "test", "-N", passphrase, "-f"])
        .arg(&key)
        .status();
    made.ok()?.success().then_some(key)
}

/// Configures git to sign with an SSH key, which belongs to `test@localhost`.
fn use_key(repo: &TestRepo, key: &str) {
    let public = repo.beside(&format!("{key}.pub"));
    let text = std::fs::read_to_string(&public).unwrap();
    let signers = repo.beside("signers");
    std::fs::write(&signers, format!("test@localhost {text}")).unwrap();
    repo.git(&["config", "gpg.format", "ssh"]);
    repo.git(&["config", "user.signingKey", public.to_str().unwrap()]);
    let signers = signers.to_str().unwrap();
    repo.git(&["config", "gpg.ssh.allowedSignersFile", signers]);
}

/// A session, and a key to sign it. `None` without `ssh-keygen`.
fn signable(init: &[&str]) -> Option<TestRepo> {
    let repo = session(init);
    key(&repo, "key", "")?;
    use_key(&repo, "key");
    Some(repo)
}

/// Returns the faults that `verify` reports.
fn faults(repo: &TestRepo) -> Vec<String> {
    let verified = repo.json(&["verify", "demo"], 1);
    let faults = verified[0]["faults"].as_array().unwrap();
    let what = |fault: &Value| {
        assert_eq!(fault["rule"], "T19", "{fault}");
        fault["what"].as_str().unwrap().to_owned()
    };
    faults.iter().map(what).collect()
}

/// Captures what a failed `sign` must not change.
fn everything(repo: &TestRepo) -> String {
    repo.git(&["for-each-ref"]) + &repo.git(&["count-objects", "-v"])
}

/// Checks that `sign` fails with these messages and changes nothing.
fn refused(repo: &TestRepo, words: &[&str]) {
    let before = everything(repo);
    repo.teddy(&["verify", "--sign"]).check(1, words);
    assert_eq!(everything(repo), before);
    let left = std::fs::read_dir(repo.path().join(".git/teddy/signing"));
    assert_eq!(left.map_or(0, Iterator::count), 0);
}

#[test]
fn t19_a_session_is_signed_and_verified_in_every_format() {
    for init in [
        ["--object-format=sha1", "--ref-format=files"],
        ["--object-format=sha256", "--ref-format=files"],
        ["--object-format=sha1", "--ref-format=reftable"],
        ["--object-format=sha256", "--ref-format=reftable"],
    ] {
        let Some(repo) = signable(&init) else { return };
        assert_eq!(repo.done(&["verify"]), "demo: 2 turns, sound, not signed\n");
        let users = repo.users();
        let tip = repo.git(&["rev-parse", "teddy/sessions/demo"]);
        let done = repo.json(&["verify", "--sign"], 0);
        let tag = repo.git(&["rev-parse", SIGNED]);
        assert_eq!(done[0]["signature"]["tag"], tag);
        assert_eq!(done, repo.json(&["verify", "demo"], 0));
        assert_eq!(repo.users(), users, "a signature is no tag of the user's");
        assert_eq!(repo.git(&["cat-file", "-t", SIGNED]), "tag");
        repo.git(&["verify-tag", "teddy/signed/demo"]);
        assert_eq!(repo.git(&["rev-parse", "teddy/signed/demo^{commit}"]), tip);

        let verified = repo.json(&["verify"], 0);
        let signature = &verified[0]["signature"];
        assert_eq!(signature["signer"], "test@localhost");
        assert_eq!(signature["tagger"], "Test <test@localhost>");
        assert_eq!(signature["signed"], "2026-01-02T03:04:05Z");
        assert_eq!(
            (&signature["turn"], &signature["is_whole"]),
            (&json!(2), &json!(true))
        );
        assert!(signature["key"].as_str().unwrap().starts_with("SHA256:"));

        // Later turns are only covered by a new signature.
        repo.workflow()
            .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
        let line =
            "demo: 3 turns, sound, signed up to turn 2 by test@localhost at 2026-01-02T03:04:05Z\n";
        assert_eq!(repo.done(&["verify"]), line);
        let out = repo
            .teddy(&["verify", "--sign", "demo"])
            .check(0, &[])
            .stderr
            .clone();
        assert_eq!(out, format!("Signed `demo`, turns 1-3: {SIGNED}\n"));
        let line = "demo: 3 turns, sound, signed by test@localhost at 2026-01-02T03:04:05Z\n";
        assert_eq!(repo.done(&["verify"]), line);
        repo.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn recovery_takes_a_signature_for_sound_and_gives_a_lost_one_back() {
    for refs in ["files", "reftable"] {
        let Some(repo) = signable(&[&format!("--ref-format={refs}")]) else {
            return;
        };
        repo.done(&["verify", "--sign"]);
        let first = repo.git(&["rev-parse", SIGNED]);
        repo.workflow()
            .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
        for command in [&["doctor", "--fix"][..], &["gc"], &["undo"]] {
            let out = repo.teddy(command);
            assert!(out.code == 0 && !out.stderr.contains("damaged"), "{out}");
            assert_eq!(repo.git(&["rev-parse", SIGNED]), first);
        }
        repo.git(&["pack-refs", "--all"]);
        // The tests' clock is in the past, so `git gc` would expire the reflogs.
        repo.git(&["config", "gc.reflogExpire", "never"]);
        repo.git(&["gc", "-q", "--prune=now"]);
        repo.done(&["verify"]);

        // If the object of the tag is missing, recovery returns to the previous tag.
        let bytes = repo.git(&["cat-file", "tag", SIGNED]);
        repo.write("lost", bytes.replace("Session demo", "Session lost") + "\n");
        let lost = repo.git(&["hash-object", "-t", "tag", "-w", "lost"]);
        repo.remove("lost");
        repo.git(&["update-ref", SIGNED, &lost]);
        repo.remove(&format!(".git/objects/{}/{}", &lost[..2], &lost[2..]));
        let words = format!("`{SIGNED}` was damaged and is at {first} again");
        repo.teddy(&["doctor", "--fix"]).check(0, &[&words]);
        assert_eq!(repo.git(&["rev-parse", SIGNED]), first);
        let again = repo.teddy(&["doctor", "--fix"]);
        assert!(!again.stderr.contains("damaged"), "{again}");
        repo.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

#[test]
fn a_signature_goes_with_its_session_and_travels_with_it() {
    let Some(repo) = signable(&[]) else { return };
    repo.done(&["verify", "--sign"]);
    let other = repo.beside("other.git");
    repo.git(&["init", "-q", "--bare", other.to_str().unwrap()]);
    let sessions = "refs/teddy/sessions/*:refs/teddy/sessions/*";
    let signed = "refs/teddy/signed/*:refs/teddy/signed/*";
    let push = || repo.git(&["push", "-q", other.to_str().unwrap(), sessions, signed]);
    push();
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    repo.done(&["verify", "--sign"]);
    push();
    let signers = repo.git(&["config", "gpg.ssh.allowedSignersFile"]);
    repo.git_in(&other, &["config", "gpg.ssh.allowedSignersFile", &signers]);
    let line = "demo: 3 turns, sound, signed by test@localhost at 2026-01-02T03:04:05Z\n";
    assert_eq!(
        repo.teddy_in(&other, &["verify"]).check(0, &[]).stdout,
        line
    );

    repo.done(&["gc", "demo", "-y"]);
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/signed"]), "");
}

#[test]
fn a_signature_is_pushed_and_fetched_with_the_session_that_it_covers() {
    let Some(repo) = signable(&[]) else {
        return;
    };
    let server = repo.beside("server.git");
    let server = server.to_str().unwrap();
    repo.git(&["init", "-q", "--bare", server]);
    repo.git(&["remote", "add", "origin", server]);
    insta::assert_snapshot!(repo.printed(&["push", "--sign", "-y"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
      the signature covers the files, so it is not sent without them (`--code`)
    --- stderr
    Signed `demo`, turns 1-2: refs/teddy/signed/demo
    Sent 1 session to `origin`.
    exit code 0
    ");
    assert_eq!(repo.git(&["ls-remote", "origin", SIGNED]), "");
    insta::assert_snapshot!(repo.printed(&["push", "--code", "--sign", "-y"]), @"
    demo: 2 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin, with the signature
      takes the place of refs/teddy/bare/demo
      2 files in no branch of origin:
        a.txt
        b.txt
    --- stderr
    Signed `demo`, turns 1-2: refs/teddy/signed/demo
    Sent 1 session to `origin`.
    exit code 0
    ");
    let signed = repo.git(&["rev-parse", SIGNED]);
    assert_eq!(
        repo.git(&["ls-remote", "origin", SIGNED]),
        format!("{signed}\t{SIGNED}")
    );

    repo.done(&["fetch"]);
    let theirs = "refs/teddy/remotes-signed/origin/demo";
    assert_eq!(repo.git(&["rev-parse", theirs]), signed);
    let verified = repo.json(&["verify", "origin/demo"], 0);
    assert_eq!(verified[0]["signature"]["signer"], "test@localhost");
    assert_eq!(verified[0]["signature"]["is_whole"], true);
    repo.done(&["doctor", "--fix"]);
    let found = repo.json(&["doctor"], 0);
    assert!(!found.to_string().contains("remotes-signed"), "{found}");

    // A later turn is not covered. If the remote deletes the signature, `fetch` deletes it too.
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    repo.done(&["push", "--code", "-y"]);
    repo.done(&["fetch"]);
    let verified = repo.json(&["verify", "origin/demo"], 0);
    assert_eq!(verified[0]["signature"]["is_whole"], false);
    repo.git(&["push", "-q", "origin", &format!(":{SIGNED}")]);
    repo.done(&["fetch"]);
    assert_eq!(repo.git(&["for-each-ref", theirs]), "");
}

#[test]
fn a_signature_that_git_does_not_accept_is_a_fault() {
    let Some(repo) = signable(&[]) else { return };
    repo.done(&["verify", "--sign"]);
    let signers = repo.beside("signers");
    let known = std::fs::read(&signers).unwrap();

    key(&repo, "other", "").unwrap();
    let other = std::fs::read_to_string(repo.beside("other.pub")).unwrap();
    std::fs::write(&signers, format!("other@localhost {other}")).unwrap();
    let words = "its signature: its key is not in the file that `gpg.ssh.allowedSignersFile` names";
    assert_eq!(faults(&repo), [words]);
    repo.git(&["config", "--unset", "gpg.ssh.allowedSignersFile"]);
    let words = "its signature: git cannot tell whose key it is: `gpg.ssh.allowedSignersFile` names \
                 no existing file";
    assert_eq!(faults(&repo), [words]);
    std::fs::write(&signers, known).unwrap();
    use_key(&repo, "key");
    assert_eq!(repo.json(&["verify"], 0)[0]["faults"], json!([]));

    // Forged tags: changed content, or something else than a signed tag of a commit.
    let tag = repo.git(&["cat-file", "tag", SIGNED]) + "\n";
    let forge = |kind: &str, text: &str| {
        repo.write("forged", text);
        let id = repo.git(&["hash-object", "-t", kind, "-w", "--literally", "forged"]);
        repo.remove("forged");
        repo.git(&["update-ref", SIGNED, &id]);
        faults(&repo)
    };
    let told = forge("tag", &tag.replace("turns 1-2", "turns 1-9"));
    assert_eq!(told, ["its signature: it is not what the key has signed"]);
    let told = forge("tag", &tag[..tag.find("-----").unwrap()]);
    assert_eq!(told, ["its signature: it has no signature"]);
    let told = forge("tag", &tag.replace("type commit", "type blob"));
    assert_eq!(told, ["its signature: it is the tag of a blob"]);
    let told = forge("blob", "x");
    assert!(told[0].ends_with("is a blob, not a tag"), "{told:?}");
    // Recovery leaves a forged tag to `verify`, because it is not damaged.
    let out = repo.teddy(&["doctor", "--fix"]);
    assert!(!out.stderr.contains("damaged"), "{out}");
    repo.done(&["verify", "--sign"]);
    assert_eq!(repo.json(&["verify"], 0)[0]["faults"], json!([]));
}

#[test]
fn a_signature_of_something_else_is_a_fault() {
    let Some(repo) = signable(&[]) else { return };
    repo.done(&["verify", "--sign"]);
    repo.workflow().branch("1", "fork").done();
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.done(&["verify", "--sign", "fork"]);
    let tip = repo.git(&["rev-parse", "teddy/sessions/fork"]);
    let tag = repo.git(&["rev-parse", "refs/teddy/signed/fork"]);
    repo.git(&["update-ref", SIGNED, &tag]);
    let told = faults(&repo);
    assert_eq!(
        told,
        [
            format!("its signature: it is of commit {tip}, which is no turn of the session"),
            "its signature: it was made for `teddy/signed/fork`".to_owned()
        ]
    );
    repo.teddy(&["verify", "demo"]).check(1, &[]);
    insta::assert_snapshot!(repo.printed(&["verify", "fork"]), @"
    fork: 2 turns, sound, signed by test@localhost at 2026-01-02T03:04:05Z
    exit code 0
    ");
}

/// Bug: `fetch` took a session that `verify` refused.
#[test]
fn t19_a_session_with_something_else_in_place_of_its_signature_is_not_fetched() {
    let (ada, ben) = two_people();
    let session = "refs/teddy/sessions/add-auth";
    ada.git(&["push", "-q", "origin", session]);
    let tag = |name: &str, of: &str| {
        ada.git(&["tag", "-f", "-a", "-m", "x", name, of]);
        ada.git(&["rev-parse", &format!("refs/tags/{name}")])
    };
    let name = "teddy/signed/add-auth";
    let of_else = "its signature is of something else (T19)";
    for (object, words) in [
        (
            ada.git(&["rev-parse", session]),
            "is a commit, not a tag (T19)",
        ),
        (tag("other", session), of_else),
        (tag(name, "HEAD"), of_else),
    ] {
        let refspec = format!("+{object}:refs/{name}");
        ada.git(&["push", "-q", "origin", &refspec]);
        let refused = format!("`{session}`");
        ben.teddy(&["fetch"]).check(1, &[&refused, words]);
        assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
    }
    let right = tag(name, &format!("{session}^"));
    ada.git(&["push", "-q", "origin", &format!("+{right}:refs/{name}")]);
    ben.teddy(&["fetch"]).check(0, &["origin/add-auth"]);
}

#[test]
fn a_missing_part_of_a_signature_is_named() {
    let repo = session(&[]);
    repo.git(&["config", "gpg.format", "ssh"]);
    refused(
        &repo,
        &[
            "git has no key to sign with",
            "hint: `git config --global gpg.format ssh`",
        ],
    );
    repo.git(&["config", "user.signingKey", "/nowhere/key"]);
    refused(&repo, &["git made no signature: ", "`user.signingKey`"]);
    repo.git(&["config", "gpg.format", "openpgp"]);
    repo.git(&["config", "gpg.program", "/nowhere/gpg"]);
    refused(
        &repo,
        &["git made no signature: ", "/nowhere/gpg", "`gpg.program`"],
    );

    let mut command = repo.teddy_command(&["verify", "--sign"]);
    let command = command
        .current_dir(repo.path())
        .stdin(std::process::Stdio::null());
    for role in ["AUTHOR", "COMMITTER"] {
        command.env_remove(format!("GIT_{role}_NAME"));
        command.env_remove(format!("GIT_{role}_EMAIL"));
    }
    repo.git(&["config", "user.useConfigOnly", "true"]);
    Output::of(command).check(1, &["git does not know who you are", "user.email"]);
    insta::assert_snapshot!(repo.printed(&["verify", "--sign", "dema"]), @"
    --- stderr
    error: there is no session `dema`
    hint: did you mean `demo`? `teddy sessions` lists the sessions
    exit code 1
    ");
}

#[test]
fn no_passphrase_is_requested_without_a_terminal() {
    let repo = session(&[]);
    if key(&repo, "locked", "secret").is_none() {
        return;
    }
    use_key(&repo, "locked");
    // With and without the public half, as some users keep their keys.
    let private = repo.beside("locked");
    for key in [repo.beside("locked.pub"), private] {
        repo.git(&["config", "user.signingKey", key.to_str().unwrap()]);
        refused(
            &repo,
            &[
                "git made no signature: ",
                "passphrase",
                "hint: add the key to your agent",
            ],
        );
    }
}

#[test]
fn a_conditional_include_sets_the_signing_key() {
    let Some(repo) = signable(&[]) else { return };
    // A conditional include for repositories below a directory, as many users have it.
    let key = repo.git(&["config", "user.signingKey"]);
    repo.git(&["config", "--unset", "user.signingKey"]);
    let work = repo.beside("work.config");
    std::fs::write(&work, format!("[user]\n\tsigningKey = {key}\n")).unwrap();
    let condition = format!("includeIf.gitdir:{}/.git.path", repo.path().display());
    repo.git(&["config", &condition, work.to_str().unwrap()]);
    repo.done(&["verify", "--sign"]);
    insta::assert_snapshot!(repo.printed(&["verify"]), @"
    demo: 2 turns, sound, signed by test@localhost at 2026-01-02T03:04:05Z
    exit code 0
    ");
}

#[test]
fn a_signature_is_there_or_not_when_it_is_killed() {
    let Some(repo) = signable(&[]) else { return };
    let mut command = repo.teddy_command(&["verify", "--sign"]);
    let out = Output::of(
        command
            .current_dir(repo.path())
            .env("FAILPOINTS", "before-snapshot-ref=return(kill)"),
    );
    assert_ne!(out.code, 0);
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/signed"]), "");
    repo.done(&["verify", "--sign"]);
    let keeps = std::fs::read_dir(repo.path().join(".git/objects/pack")).unwrap();
    let keeps = keeps.filter(|file| {
        file.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|it| it == "keep")
    });
    assert_eq!(keeps.count(), 0);
    repo.done(&["verify"]);
}
