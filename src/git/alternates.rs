//! `objects/info/alternates`: the object directories from which a repository borrows.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Returns the line for an object directory: quoted as in C, so that it is one line whatever is in the
/// path.
pub(in crate::git) fn alternates_line(path: &Path) -> Vec<u8> {
    let mut text = vec![b'"'];
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', byte]),
            0..0x20 | 0x7f => text.extend(format!("\\{byte:03o}").bytes()),
            _ => text.push(byte),
        }
    }

    text.extend(b"\"\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &str) {
        assert_eq!(
            alternates_line(Path::new(path)),
            format!("{expected}\n").as_bytes()
        );
    }

    #[test]
    fn a_path_is_one_line_whatever_is_in_it() {
        check("/a b/objects", "\"/a b/objects\"");
        check("/#\"\\/\n", "\"/#\\\"\\\\/\\012\"");
        check("/ä", "\"/ä\"");
    }
}
