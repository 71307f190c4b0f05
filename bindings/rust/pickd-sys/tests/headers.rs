//! Compares the declarations in src/ with the C headers, by the C compiler: every function, struct,
//! field, enum and constant, in both directions. Knows the one form that declarations have there.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const RUST: &str = concat!(include_str!("../src/lib.rs"), include_str!("../src/body.rs"));

/// Where the headers are: by pkg-config, as the library, or PICKD_INCLUDE_DIR.
fn include_flags() -> Vec<String> {
    if let Ok(directory) = std::env::var("PICKD_INCLUDE_DIR") {
        return vec![format!("-I{directory}")];
    }
    let said = Command::new("pkg-config").args(["--cflags", "pickd"]).output().expect("pkg-config");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

fn header(name: &str) -> String {
    let flags = include_flags();
    let directories = flags.iter().filter_map(|flag| flag.strip_prefix("-I"));
    for directory in directories.chain(["/usr/include"]) {
        if let Ok(text) = std::fs::read_to_string(Path::new(directory).join("pickd").join(name)) {
            return text;
        }
    }
    panic!("no pickd/{name} in {flags:?}");
}

/// A type in C's words.
fn in_c(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(to) = rust.strip_prefix("*const ") {
        // A pointer to what must not be changed; what it points to may be a pointer itself.
        return match to.strip_prefix('*') {
            Some(_) => format!("{} const *", in_c(to)),
            None => format!("const {} *", in_c(to)),
        };
    }
    if let Some(to) = rust.strip_prefix("*mut ") {
        return format!("{} *", in_c(to));
    }
    match rust {
        "c_char" => "char",
        "c_int" => "int",
        "c_double" => "double",
        "c_void" => "void",
        "usize" => "size_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        other => {
            assert!(other.starts_with("pickd_"), "no C type for {other}");
            other
        }
    }
    .to_owned()
}

struct Declarations {
    functions: Vec<(String, String)>,
    structs: Vec<(String, Vec<(String, String)>)>,
    constants: Vec<(String, String)>,
}

fn declarations() -> Declarations {
    let mut found =
        Declarations { functions: Vec::new(), structs: Vec::new(), constants: Vec::new() };
    let mut lines = RUST.lines().map(str::trim);
    // Of a declaration that goes on over lines, the rest.
    let joined = |first: &str, lines: &mut dyn Iterator<Item = &'static str>| {
        let mut whole = first.to_owned();
        while !whole.ends_with(';') {
            whole += lines.next().expect("the end of a declaration");
        }
        whole
    };
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("pub fn ") {
            let rest = joined(rest, &mut lines);
            let (name, rest) = rest.split_once('(').unwrap();
            let (arguments, result) = rest.strip_suffix(';').unwrap().split_once(')').unwrap();
            let types: Vec<String> = arguments
                .split(',')
                .map(str::trim)
                .filter(|argument| !argument.is_empty())
                .map(|argument| in_c(argument.split_once(": ").unwrap().1))
                .collect();
            let result = result.trim().strip_prefix("-> ").map_or("void".to_owned(), in_c);
            let types = if types.is_empty() { "void".to_owned() } else { types.join(", ") };
            found.functions.push((name.to_owned(), format!("{result} {name}({types});")));
        } else if let Some(rest) = line.strip_prefix("pub const ") {
            let (name, value) = rest.strip_suffix(';').unwrap().split_once(" = ").unwrap();
            let value = match value {
                "u32::MAX" => "UINT32_MAX",
                "i64::MAX" => "INT64_MAX",
                "usize::MAX" => "SIZE_MAX",
                number => number,
            };
            found.constants.push((name.split_once(": ").unwrap().0.to_owned(), value.to_owned()));
        } else if let Some(rest) = line.strip_prefix("pub struct ") {
            let fields = lines
                .by_ref()
                .take_while(|line| *line != "}")
                .filter_map(|line| line.strip_prefix("pub "))
                .map(|field| {
                    let (name, of) = field.strip_suffix(',').unwrap().split_once(": ").unwrap();
                    (name.to_owned(), in_c(of))
                })
                .collect();
            found.structs.push((rest.split_once(' ').unwrap().0.to_owned(), fields));
        }
    }
    found
}

#[test]
fn the_c_compiler_finds_the_same_declarations_in_the_headers() {
    let declared = declarations();
    assert!(declared.functions.len() > 50 && declared.structs.len() > 12);
    let mut program = String::from("#include <pickd/body.h>\n");
    for (_, prototype) in &declared.functions {
        // A second declaration of another type is an error.
        writeln!(program, "{prototype}").unwrap();
    }
    for (name, value) in &declared.constants {
        writeln!(program, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    for (name, fields) in declared.structs.iter().filter(|(_, fields)| !fields.is_empty()) {
        // Rust lays out a repr(C) struct as C does one of the same fields in the same order.
        write!(program, "struct rust_{name} {{").unwrap();
        for (field, of) in fields {
            write!(program, " {of} {field};").unwrap();
        }
        writeln!(program, " }};").unwrap();
        writeln!(
            program,
            "_Static_assert(sizeof(struct rust_{name}) == sizeof({name}), \"{name}\");"
        )
        .unwrap();
        for (field, of) in fields {
            writeln!(
                program,
                "_Static_assert(offsetof(struct rust_{name}, {field}) == offsetof({name}, {field}) \
                 && __builtin_types_compatible_p({of}, __typeof__((({name} *)0)->{field})), \
                 \"{name}.{field}\");"
            )
            .unwrap();
        }
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("headers.c");
    std::fs::write(&path, program).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let said = Command::new(compiler)
        .args(["-std=gnu11", "-Wall", "-Werror", "-fsyntax-only"])
        .args(include_flags())
        .arg(&path)
        .output()
        .expect("a C compiler");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn nothing_of_the_headers_is_missing() {
    let text = header("pickd.h") + &header("body.h");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut wanted = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("PICKD_API ") {
            let name = rest.split_once('(').unwrap().0.rsplit(|c| !is_word(c)).next().unwrap();
            wanted.insert(name.to_owned());
        } else if let Some(name) = line.strip_prefix("} ").and_then(|rest| rest.strip_suffix(';')) {
            wanted.insert(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("#define PICKD_") {
            let name = rest.split(|c| !is_word(c)).next().unwrap();
            // Those that are for C alone: initialisers, guards, what a declaration is made of.
            if !name.ends_with("_INIT")
                && !name.ends_with("_H")
                && !name.starts_with("VERSION_")
                && name != "API"
                && name != "REPORT_KIND_NONE_"
            {
                wanted.insert(format!("PICKD_{name}"));
            }
        } else if let Some(name) = line.strip_prefix("  PICKD_") {
            let (name, rest) = name.split_at(name.find(|c| !is_word(c)).unwrap_or(name.len()));
            if rest.starts_with(" = ") {
                wanted.insert(format!("PICKD_{name}"));
            }
        }
    }
    assert!(wanted.len() > 120, "{}", wanted.len());
    let declared: BTreeSet<&str> = RUST.split(|c| !is_word(c)).collect();
    let missing: Vec<&String> =
        wanted.iter().filter(|name| !declared.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
