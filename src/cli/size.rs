//! Sizes, as a person reads them.

/// Returns a size for a person.
pub(super) fn shown(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{size:.1} {unit}")
            };
        }
        size /= 1024.0;
    }

    format!("{size:.1} GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(
            [0, 1023, 1536, 5 << 20, 3 << 40].map(shown),
            ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3072.0 GiB"]
        );
    }
}
