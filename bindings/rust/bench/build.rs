//! Compiles the event loop in C that the Rust client is measured against: that of the Go client's.

fn main() {
    let loop_c = "../../go/internal/bench/loop.c";
    println!("cargo:rerun-if-changed={loop_c}");
    println!("cargo:rerun-if-changed=../../go/internal/bench/loop.h");
    let mut build = cc::Build::new();
    build.file(loop_c).opt_level(2);
    if let Ok(include) = std::env::var("DEP_PICKD_INCLUDE") {
        build.include(include);
    }
    build.compile("loop");
}
