//! The same program as `git teddy`.

fn main() -> std::process::ExitCode {
    teddy::cli::main()
}
