//! Random tokens for secrets, and their comparison.

use uuid::Uuid;

/// Returns 32 hexadecimal digits with 122 random bits.
pub fn random_token() -> String {
    Uuid::new_v4().simple().to_string()
}

/// Compares in constant time.
pub fn is_same_token(one: &str, other: &str) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let pairs = one.bytes().zip(other.bytes());
    let differing = pairs.fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_as_a_whole() {
        let check = |one, other, expected| assert_eq!(is_same_token(one, other), expected);
        check("abc", "abc", true);
        check("abc", "abd", false);
        check("abc", "bbc", false);
        check("abc", "ab", false);
        check("", "", true);
    }

    #[test]
    fn no_word_comes_twice() {
        let (one, other) = (random_token(), random_token());
        assert_eq!((one.len(), other.len()), (32, 32));
        assert_ne!(one, other);
    }
}
