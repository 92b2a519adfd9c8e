//! The verified inputs, one by one.
