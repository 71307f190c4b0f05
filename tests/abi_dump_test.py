#!/usr/bin/env python3
"""The binary interface of libpickd.so.0 and libpickd-body.so.0 is what abi/*.abi say: nothing less, or other.

Usage: abi_dump_test.py SOURCE_DIR BINARY_DIR          compare
       abi_dump_test.py SOURCE_DIR BINARY_DIR --write  store a new dump (./dev abi)
Exit 77: skipped, because there is no abidiff (abigail-tools) or no library that ships.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

WHAT_TO_DO = """
The binary interface differs from the stored one in abi/ (above; abidiff).
  Only something new at the end (a function, an enumerator, a field behind the last one of a struct that
  tells its size): compatible. Raise PICKD_VERSION_MINOR in include/pickd/pickd.h and the project's version,
  run `./dev abi`, and commit the new dump with the change.
  Anything else (a type, a field's place or size, an argument, a symbol that is gone): it breaks programs that
  are installed today. Undo it, or add a new function beside the old one; if it must be, it needs another
  soname (SOVERSION), another version node in its map, and an entry in CHANGELOG.md."""

DUMP_OPTIONS = ["--no-show-locs", "--no-comp-dir-path", "--no-corpus-path", "--no-elf-needed", "--no-architecture",
                "--drop-undefined-syms", "--no-parameter-names", "--type-id-style", "hash"]
# Handles whose insides are the library's own.
OPAQUE = {"pickd_client", "pickd_queue", "pickd_result", "pickd_body", "pickd_answer", "pickd_body_counters"}
# Of each library: its header, and a struct that its dump must show.
LIBRARIES = {"libpickd": ("include/pickd/pickd.h", "pickd_request"),
             "libpickd-body": ("include/pickd/body.h", "pickd_body_options")}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def dump(library, header):
    """The dump of the library's public functions and the types that they show, as text."""
    done = run("abidw", *DUMP_OPTIONS, library)
    if done.returncode != 0 or "<abi-corpus" not in done.stdout:
        raise RuntimeError(f"abidw gave {done.returncode}: {done.stderr}")
    return reduced(ElementTree.fromstring(done.stdout), header)


def reduced(corpus, header):
    """The corpus without what no caller can see: no source file, no name of a place, in an order of its own."""
    public = {symbol.get("name") for symbol in corpus.iter("elf-symbol")}
    types, functions = {}, {}
    for element in corpus.iter():
        if element.get("id"):
            known = types.get(element.get("id"))
            if known is None or known.get("is-declaration-only") == "yes":
                types[element.get("id")] = element
        if element.tag == "function-decl" and element.get("name") in public and element.get("elf-symbol-id"):
            functions[element.get("name")] = element
    seen, waiting = {}, list(functions.values())
    while waiting:
        element = waiting.pop()
        for part in element.iter():
            wanted = part.get("type-id")
            if wanted is None or wanted in seen or wanted not in types:
                continue
            found = types[wanted]
            if found.tag == "class-decl" and found.get("name") in OPAQUE:
                found = ElementTree.Element(found.tag, {
                    "name": found.get("name"), "is-struct": "yes", "visibility": "default",
                    "is-declaration-only": "yes", "id": wanted})
            seen[wanted] = found
            waiting.append(found)
    unit = ElementTree.Element("abi-instr", {"address-size": "64", "path": header,
                                             "language": "LANG_C99"})
    unit.extend(sorted(seen.values(), key=lambda one: (one.get("name") or "~", one.tag, one.get("id"))))
    unit.extend(functions[name] for name in sorted(functions))
    made = ElementTree.Element("abi-corpus", {"version": corpus.get("version"), "soname": corpus.get("soname")})
    made.extend([corpus.find("elf-function-symbols"), unit])
    ElementTree.indent(made)
    return ElementTree.tostring(made, encoding="unicode") + "\n"


def incomplete(text, source, name):
    """What the dump must hold to be worth comparing: every symbol, and types from the debug information."""
    with open(os.path.join(source, f"abi/{name}.map"), encoding="utf-8") as lines:
        public = set(re.findall(r"^\s*(pickd_\w+);", lines.read(), re.M))
    symbols = set(re.findall(r"elf-symbol name=\W(\w+)", text))
    functions = set(re.findall(r"function-decl name=\W(\w+)", text))
    if symbols != public or not public <= functions:
        return f"symbols or functions that are in the map or in the dump only: {symbols ^ public | public - functions}"
    if LIBRARIES[name][1] not in text or "data-member" not in text:
        return "the library has no types in its debug information; build it with -g2"
    return None


def check(source, binary, name, write):
    """Compares one library with its stored dump, or stores it."""
    stored = os.path.join(source, f"abi/{name}.abi")
    text = dump(os.path.join(binary, f"lib/{name}.so.0"), LIBRARIES[name][0])
    if missing := incomplete(text, source, name):
        print(f"{name}: {missing}")
        return False
    if write:
        with open(stored, "w", encoding="utf-8") as out:
            out.write(text)
        print(f"abi/{name}.abi: {len(text.splitlines())} lines")
        return True
    with tempfile.NamedTemporaryFile("w", suffix=".abi", encoding="utf-8") as now:
        now.write(text)
        now.flush()
        # Both are dumps made the same way, so nothing but the interface can differ.
        done = run("abidiff", "--no-show-locs", "--harmless", stored, now.name)
    if done.returncode != 0:
        print(done.stdout + done.stderr + WHAT_TO_DO)
        return False
    print(f"{name}.so.0 has the interface of abi/{name}.abi")
    return True


def main():
    source, binary = sys.argv[1], sys.argv[2]
    with open(os.path.join(binary, "CMakeCache.txt"), encoding="utf-8") as cache:
        if re.search(r"^PICKD_SANITIZE:\w+=\S", cache.read(), re.M):
            print("skipped: a sanitizer's build is not what ships")
            return 77
    for tool in ("abidw", "abidiff"):
        if shutil.which(tool) is None:
            print(f"skipped: there is no {tool}; install abigail-tools")
            return 77
    for name in LIBRARIES:
        if not os.path.exists(os.path.join(binary, f"lib/{name}.so.0")):
            print(f"skipped: {name}.so.0 was not built")
            return 77
    results = [check(source, binary, name, "--write" in sys.argv[3:]) for name in LIBRARIES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
