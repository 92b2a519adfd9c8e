//! The layered configuration and what a repository may decide before it is trusted.
