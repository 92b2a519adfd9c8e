//! Paths and words of any bytes in JSON, which itself knows only UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path or a word of any bytes: text in JSON if it is UTF-8, else an array of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw(OsString);

impl Raw {
    /// Returns the bytes as the system takes them.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }
}

impl From<OsString> for Raw {
    fn from(text: OsString) -> Raw {
        Raw(text)
    }
}

/// The two forms of [`Raw`] in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    /// What is UTF-8.
    Text(String),
    /// What is not.
    Bytes(Vec<u8>),
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let form = match self.0.to_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes(self.0.as_bytes().to_vec()),
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        Ok(Raw(match Form::deserialize(deserializer)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes),
        }))
    }
}

/// Lists of paths, for `#[serde(with = ...)]`.
pub mod paths {
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Raw;

    /// Writes a list.
    ///
    /// # Errors
    /// As the format has them.
    pub fn serialize<S: Serializer>(list: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.iter().map(|path| Raw(path.clone().into_os_string())))
    }

    /// Reads a list.
    ///
    /// # Errors
    /// As the format has them.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let list = Vec::<Raw>::deserialize(deserializer)?;
        Ok(list.into_iter().map(|raw| raw.0.into()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_bytes_come_back() {
        for bytes in [&b"/a b"[..], b"/\xff\n\"", b""] {
            let raw = Raw(OsString::from_vec(bytes.to_vec()));
            let text = serde_json::to_string(&raw).unwrap();
            assert_eq!(serde_json::from_str::<Raw>(&text).unwrap(), raw, "{text}");
        }
    }
}
