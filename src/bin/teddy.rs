//! The `teddy` program.

fn main() -> std::process::ExitCode {
    teddy::cli::main()
}
