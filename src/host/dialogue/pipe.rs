//! The named pipe that is a program's input.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};

use rustix::fs::OFlags;

pub(super) struct InputPipe {
    /// Keeps the pipe open until the first write. Before that the program might not have opened it.
    reader: File,
    writer: File,
}

impl InputPipe {
    pub(super) fn make(path: &Path) -> io::Result<InputPipe> {
        // A retry of a start uses the same directory.
        let _ = std::fs::remove_file(path);
        make_pipe(path)?;
        let waits_not = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        // Without `NONBLOCK`, opening a FIFO waits for the other end.
        let reader = File::options()
            .read(true)
            .custom_flags(waits_not)
            .open(path)?;
        let writer = File::options().write(true).open(path)?;
        Ok(InputPipe { reader, writer })
    }

    /// Writes what is sent, from a thread: a program that does not read must not block the caller.
    pub(super) fn speak(self) -> io::Result<Sender<Vec<u8>>> {
        let (sender, pieces) = channel::<Vec<u8>>();
        let mut pipe = Some(self);
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                // The first piece is sent after the program was started, so it has its own end by
                // then.
                let Some(InputPipe { reader, mut writer }) = pipe.take() else {
                    return;
                };
                let first = pieces.recv();
                drop(reader);
                for bytes in first.into_iter().chain(pieces) {
                    if writer.write_all(&bytes).is_err() {
                        return;
                    }
                }
            })?;

        Ok(sender)
    }
}

#[cfg(not(target_vendor = "apple"))]
fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    Ok(mknodat(
        CWD,
        path,
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )?)
}

#[cfg(target_vendor = "apple")]
fn make_pipe(path: &Path) -> io::Result<()> {
    // rustix has no `mkfifo` for Apple systems.
    let status = crate::host::process::command("/usr/bin/mkfifo")
        .arg(path)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("`mkfifo` failed")),
    }
}
