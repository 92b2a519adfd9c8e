//! Verifies signed tags with git and the user's configuration of trusted keys.

use super::disable_prompts;
use crate::git::object::id::TagId;
use crate::git::repository::Repository;
use crate::git::user_git::user_git;
use crate::text::sanitize::sanitize_line;

/// A signature that git accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSignature {
    /// Owner of the key according to the user's configuration.
    pub signer: String,
    /// The key, as named by the verifying program.
    pub key: String,
}

/// Lets git verify a tag's signature. The inner error is the reason why it is not valid.
pub fn verify_tag(
    repository: &Repository,
    tag: TagId,
) -> anyhow::Result<Result<AcceptedSignature, String>> {
    let mut git = user_git(repository.workdir())?;
    disable_prompts(&mut git);
    git.env("GIT_DIR", repository.git_dir())
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .args(["verify-tag", "--raw", &tag.to_string()]);
    let output = git.output()?;

    let stderr = String::from_utf8_lossy(&output.stderr);
    Ok(match (output.status.success(), parse_accepted(&stderr)) {
        (true, Some(accepted)) => Ok(accepted),
        _ => Err(explain_refusal(&stderr)),
    })
}

fn parse_accepted(stderr: &str) -> Option<AcceptedSignature> {
    let of_ssh = |line: &str| {
        let tail = line.strip_prefix("Good \"git\" signature for ")?;
        let (signer, key) = tail.rsplit_once(" with ")?;
        let key = key.rsplit_once(" key ").map_or(key, |(_, key)| key);
        Some((signer.to_owned(), key.to_owned()))
    };
    let of_gpg = |line: &str| {
        let tail = line.strip_prefix("[GNUPG:] GOODSIG ")?;
        let (key, signer) = tail.split_once(' ')?;
        Some((signer.to_owned(), key.to_owned()))
    };

    let mut lines = stderr.lines();
    let (signer, key) = lines.find_map(|line| of_ssh(line).or_else(|| of_gpg(line)))?;
    Some(AcceptedSignature { signer, key })
}

fn explain_refusal(stderr: &str) -> String {
    let after = |start: &str| {
        let mut lines = stderr.lines();
        let tail = lines.find_map(|line| line.strip_prefix(start))?;
        Some(sanitize_line(tail.split(' ').next().unwrap_or_default()).into_owned())
    };
    if stderr.contains("allowedSignersFile") {
        return "git cannot tell whose key it is: `gpg.ssh.allowedSignersFile` names no file that is \
                there"
            .to_owned();
    }

    if stderr.contains("No principal matched") {
        return "its key is not in the file that `gpg.ssh.allowedSignersFile` names".to_owned();
    }

    if let Some(key) = after("[GNUPG:] NO_PUBKEY ") {
        return format!("git cannot tell whose key it is: the public key {key} is not here");
    }

    if let Some(key) = after("[GNUPG:] BADSIG ") {
        return format!("it is not what the key {key} has signed");
    }

    if stderr.contains("incorrect signature") {
        return "it is not what the key has signed".to_owned();
    }

    if stderr.contains("no signature found") {
        return "it has no signature".to_owned();
    }

    let mut messages = stderr.lines().filter(|line| !line.starts_with("[GNUPG:]"));
    match messages.next_back() {
        Some(line) => format!("git does not accept it: {}", sanitize_line(line.trim())),
        None => "git does not accept it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_signature_it_is_is_read() {
        let check = |stderr: &str, expected: Option<(&str, &str)>| {
            let actual = parse_accepted(stderr);
            let actual = actual.map(|signature| (signature.signer, signature.key));
            let expected = expected.map(|(signer, key)| (signer.to_owned(), key.to_owned()));
            assert_eq!(actual, expected);
        };
        check(
            "Good \"git\" signature for a with b@c with ED25519 key SHA256:x/y+z\n",
            Some(("a with b@c", "SHA256:x/y+z")),
        );
        check(
            "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 9A1 Ada L <ada@x>\n[GNUPG:] VALIDSIG F\n",
            Some(("Ada L <ada@x>", "9A1")),
        );
        check(
            "Good \"git\" signature with ED25519 key SHA256:x\nNo principal matched.\n",
            None,
        );
        check("", None);
    }

    #[test]
    fn why_a_signature_is_refused_is_said() {
        let check = |stderr: &str, expected: &str| assert_eq!(explain_refusal(stderr), expected);
        check(
            "[GNUPG:] ERRSIG 9 1\n[GNUPG:] NO_PUBKEY 9A1\n",
            "git cannot tell whose key it is: the public key 9A1 is not here",
        );
        check(
            "[GNUPG:] BADSIG 9A1 Ada <ada@x>\n",
            "it is not what the key 9A1 has signed",
        );
        check("error: no signature found\n", "it has no signature");
        check(
            "[GNUPG:] X\nhe\u{1b}y\n",
            "git does not accept it: he\\u{1b}y",
        );
        check("", "git does not accept it");
    }
}
