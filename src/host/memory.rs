//! Reads the available memory of the machine.

/// Returns the bytes that can be allocated without swapping, or `None` if `/proc/meminfo` does not
/// say.
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    parse_available(&text)
}

fn parse_available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::parse_available;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(parse_available(text), expected);
    }

    #[test]
    fn the_available_memory_is_read() {
        check(
            "MemTotal:  8 kB\nMemAvailable:    2048 kB\n",
            Some(2_097_152),
        );
        check("MemTotal: 8 kB\n", None);
        check("MemAvailable: many kB\n", None);
    }
}
