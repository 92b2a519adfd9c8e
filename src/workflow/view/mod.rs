//! What sessions and turns are to somebody who looks at them, in a terminal or in a browser:
//! everything bounded, and what cannot be read named instead of in the way.

pub mod plain;
pub mod session_page;
pub mod timeline;
pub mod turn_page;
