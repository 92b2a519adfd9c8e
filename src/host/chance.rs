//! Chance: what keeps many clients from doing the same thing at the same moment. No secret depends
//! on it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Returns a number from 0 up to, but not including, 1.
pub fn chance() -> f64 {
    // A new state is keyed by the system's random numbers, and 53 bits are what a float can hold.
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_spread_between_nought_and_one() {
        let drawn: Vec<f64> = (0..200).map(|_| chance()).collect();
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
