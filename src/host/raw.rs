//! Paths and arguments with arbitrary bytes in JSON, which only knows UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path or argument: a string in JSON if it is UTF-8, else an array of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawText(OsString);

impl RawText {
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }
}

impl From<OsString> for RawText {
    fn from(text: OsString) -> RawText {
        RawText(text)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for RawText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self.0.to_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes(self.0.as_bytes().to_vec()),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawText, D::Error> {
        Ok(RawText(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes),
        }))
    }
}

/// Lists of paths, for `#[serde(with = ...)]`.
pub mod paths {
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::RawText;

    pub fn serialize<S: Serializer>(list: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            list.iter()
                .map(|path| RawText(path.clone().into_os_string())),
        )
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let list = Vec::<RawText>::deserialize(deserializer)?;
        Ok(list.into_iter().map(|raw| raw.0.into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_bytes_come_back() {
        for bytes in [&b"/a b"[..], b"/\xff\n\"", b""] {
            let raw = RawText(OsString::from_vec(bytes.to_vec()));
            let text = serde_json::to_string(&raw).unwrap();
            assert_eq!(
                serde_json::from_str::<RawText>(&text).unwrap(),
                raw,
                "{text}"
            );
        }
    }
}
