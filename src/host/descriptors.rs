//! Open files that whoever started us had left open, too: a command must not have them, because
//! what is open already is past the sandbox.

/// Makes every open file but the first three close when a program is executed.
///
/// Our own do that anyway; this is about inherited ones.
pub fn keep_from_children() {
    #[cfg(target_os = "linux")]
    {
        // The call is from Linux 5.9, its flag from 5.11.
        if system::close_range_on_exec().is_err() {
            open().into_iter().for_each(system::close_on_exec);
        }
    }
}

/// Returns the numbers of the open files but the first three.
#[cfg(target_os = "linux")]
fn open() -> Vec<i32> {
    let listed = std::fs::read_dir("/proc/self/fd").map(|entries| {
        let numbers = entries.flatten();
        numbers
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    });
    let all = || (0..MOST).collect::<Vec<i32>>();
    let numbers = listed.unwrap_or_else(|_| all());

    numbers.into_iter().filter(|number| *number > 2).collect()
}

/// How many are looked at if the system does not list them.
#[cfg(target_os = "linux")]
const MOST: i32 = 1 << 16;

/// The calls on Linux.
#[cfg(target_os = "linux")]
mod system {
    use std::io;

    /// Marks all from the fourth on.
    #[expect(unsafe_code, reason = "no safe crate that we use has this call")]
    pub(super) fn close_range_on_exec() -> io::Result<()> {
        // SAFETY: the call takes numbers only, and closes nothing: it sets a flag.
        let result = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Marks one.
    #[expect(unsafe_code, reason = "the number belongs to nobody here")]
    pub(super) fn close_on_exec(number: i32) {
        // SAFETY: the command sets a flag of a number, and is refused if nothing is open there.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
