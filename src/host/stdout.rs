//! Writes results to stdout. A reader that closes the pipe early (`| head`) is not an error.

use std::io::{self, Write as _};

/// Writes and flushes. Ignores a closed pipe.
pub fn write_stdout(bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    ignore_closed_pipe(out.write_all(bytes.as_ref()).and_then(|()| out.flush()))
}

/// Turns the error of a closed pipe into success.
pub fn ignore_closed_pipe(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        assert!(ignore_closed_pipe(writer.write_all(b"x")).is_ok());
        assert!(ignore_closed_pipe(Err(io::ErrorKind::StorageFull.into())).is_err());
    }
}
