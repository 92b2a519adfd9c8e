//! Verifies signed tags with git and the user's configuration of trusted keys.

use super::ask_nobody;
use crate::git::object::id::TagId;
use crate::git::repository::Repository;
use crate::git::user_git::user_git;
use crate::text::visible::visible;

/// A signature that git accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Owner of the key according to the user's configuration.
    pub signer: String,
    /// The key, as named by the verifying program.
    pub key: String,
}

/// Lets git verify a tag's signature. The inner error is the reason why it is not valid.
pub fn check(repository: &Repository, tag: TagId) -> anyhow::Result<Result<Accepted, String>> {
    let mut git = user_git(repository.workdir())?;
    ask_nobody(&mut git);
    git.env("GIT_DIR", repository.git_dir())
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .args(["verify-tag", "--raw", &tag.to_string()]);
    let output = git.output()?;

    let words = String::from_utf8_lossy(&output.stderr);
    Ok(match (output.status.success(), accepted(&words)) {
        (true, Some(accepted)) => Ok(accepted),
        _ => Err(refused(&words)),
    })
}

fn accepted(words: &str) -> Option<Accepted> {
    let of_ssh = |line: &str| {
        let rest = line.strip_prefix("Good \"git\" signature for ")?;
        let (signer, key) = rest.rsplit_once(" with ")?;
        let key = key.rsplit_once(" key ").map_or(key, |(_, key)| key);
        Some((signer.to_owned(), key.to_owned()))
    };
    let of_gpg = |line: &str| {
        let rest = line.strip_prefix("[GNUPG:] GOODSIG ")?;
        let (key, signer) = rest.split_once(' ')?;
        Some((signer.to_owned(), key.to_owned()))
    };

    let mut lines = words.lines();
    let (signer, key) = lines.find_map(|line| of_ssh(line).or_else(|| of_gpg(line)))?;
    Some(Accepted { signer, key })
}

fn refused(words: &str) -> String {
    let after = |start: &str| {
        let mut lines = words.lines();
        let rest = lines.find_map(|line| line.strip_prefix(start))?;
        Some(visible(rest.split(' ').next().unwrap_or_default()).into_owned())
    };
    if words.contains("allowedSignersFile") {
        return "git cannot tell whose key it is: `gpg.ssh.allowedSignersFile` names no file that is \
                there"
            .to_owned();
    }

    if words.contains("No principal matched") {
        return "its key is not in the file that `gpg.ssh.allowedSignersFile` names"
            .to_owned();
    }

    if let Some(key) = after("[GNUPG:] NO_PUBKEY ") {
        return format!("git cannot tell whose key it is: the public key {key} is not here");
    }

    if let Some(key) = after("[GNUPG:] BADSIG ") {
        return format!("it is not what the key {key} has signed");
    }

    if words.contains("incorrect signature") {
        return "it is not what the key has signed".to_owned();
    }

    if words.contains("no signature found") {
        return "it has no signature".to_owned();
    }

    let mut said = words.lines().filter(|line| !line.starts_with("[GNUPG:]"));
    match said.next_back() {
        Some(line) => format!("git does not accept it: {}", visible(line.trim())),
        None => "git does not accept it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_signature_it_is_is_read() {
        let check = |words: &str, expected: Option<(&str, &str)>| {
            let found = accepted(words);
            let found = found.map(|found| (found.signer, found.key));
            let expected = expected.map(|(signer, key)| (signer.to_owned(), key.to_owned()));
            assert_eq!(found, expected);
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
        let check = |words: &str, expected: &str| assert_eq!(refused(words), expected);
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
