//! Random jitter, so that many clients do not retry at the same moment. Not for secrets.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Returns a random number in `0.0..1.0`.
pub fn retry_jitter() -> f64 {
    // The standard library seeds each state from the system's random numbers. A float holds 53
    // bits.
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_spread_between_nought_and_one() {
        let drawn: Vec<f64> = (0..200).map(|_| retry_jitter()).collect();
        assert!(
            drawn.iter().all(|number| (0.0..1.0).contains(number)),
            "{drawn:?}"
        );
        assert!(
            drawn.iter().any(|number| *number < 0.5) && drawn.iter().any(|number| *number >= 0.5),
            "{drawn:?}"
        );
    }
}
