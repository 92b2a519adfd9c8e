//! `$Id$` in files (attribute `ident`), as git writes it. gix writes no space in front of the last
//! `$`, so that git's own checkout has other bytes.

/// Returns a blob as git checks it out, `None` if it has no `$Id$`.
pub(super) fn expand_ident(blob: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut remaining = blob;
    let mut output = Vec::with_capacity(blob.len() + id.len() + 4);
    let mut any = false;
    while let Some(at) = remaining.iter().position(|&byte| byte == b'$') {
        output.extend(&remaining[..=at]);
        remaining = &remaining[at + 1..];
        if let Some(length) = ident_keyword_len(remaining) {
            output.extend(format!("Id: {id} $").as_bytes());
            remaining = &remaining[length..];
            any = true;
        }
    }

    output.extend(remaining);
    any.then_some(output)
}

/// Returns the length of `Id$` or `Id:...$` at the start of a text. Like git, leaves alone what
/// another version control system wrote: a text with a space in it.
fn ident_keyword_len(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"Id")?;
    if inside.first() == Some(&b'$') {
        return Some(3);
    }
    let inside = inside.strip_prefix(b":")?;
    let end = inside.iter().position(|&byte| byte == b'$')?;
    let value = &inside[..end];
    if value.contains(&b'\n') {
        return None;
    }
    let space = value.iter().skip(1).position(|&byte| byte == b' ');
    match space {
        Some(at) if at + 2 < value.len() => None,
        _ => Some(4 + end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_git_writes_it() {
        let check = |blob: &str, expected: Option<&str>| {
            let actual = expand_ident(blob.as_bytes(), "1f");
            let actual = actual.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(actual.as_deref(), expected, "{blob}");
        };
        check("a $Id$ b", Some("a $Id: 1f $ b"));
        check("$Id: 0c $\n$Id$", Some("$Id: 1f $\n$Id: 1f $"));
        check("$$Id$$", Some("$$Id: 1f $$"));
        check("$Id: x.c,v 1.2 $", None);
        check("$Id: a\n$", None);
        check("$Identity$ $Id", None);
    }
}
