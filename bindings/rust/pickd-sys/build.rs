//! Finds libpickd: in the directory that PICKD_LIB_DIR names, else by pkg-config.

fn main() {
    println!("cargo:rerun-if-env-changed=PICKD_LIB_DIR");
    println!("cargo:rerun-if-changed=build.rs");
    let libraries: &[&str] = if std::env::var_os("CARGO_FEATURE_BODY").is_some() {
        &["pickd", "pickd-body"]
    } else {
        &["pickd"]
    };
    // Packages that compile C against the headers read DEP_PICKD_INCLUDE.
    println!("cargo:rerun-if-env-changed=PICKD_INCLUDE_DIR");
    if let Some(directory) = std::env::var_os("PICKD_INCLUDE_DIR") {
        println!("cargo:include={}", directory.to_string_lossy());
    }
    if let Some(directory) = std::env::var_os("PICKD_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", directory.to_string_lossy());
        for library in libraries {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
        return;
    }
    for library in libraries {
        match pkg_config::Config::new().atleast_version("0.1").probe(library) {
            Ok(found) => {
                if let Some(directory) = found.include_paths.first() {
                    println!("cargo:include={}", directory.display());
                }
            }
            Err(error) => {
                eprintln!(
                    "{error}\n\n{library} was not found. Install it, or set PICKD_LIB_DIR to the \
                     directory of lib{library}.so, or PKG_CONFIG_PATH to that of {library}.pc \
                     (build/release/pkgconfig in a build tree of pickd)."
                );
                std::process::exit(1);
            }
        }
    }
}
