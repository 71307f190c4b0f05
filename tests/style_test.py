#!/usr/bin/env python3
"""Fails on what a reader of the sources would stumble over.

Of each tracked or new source file: more than 500 lines; lines over 100 columns; tabs; trailing blanks; no
first comment that says what the file is for; names of places on one machine. Markdown and data are free.

Usage: style_test.py SOURCE_DIR [BINARY_DIR]   check (a test)
       style_test.py --fix SOURCE_DIR [PATH..] wrap comments over 100 columns
"""
import os
import re
import subprocess
import sys

LINES_MAX = 500
COLUMNS_MAX = 100
# Suffix or name -> what a comment starts with.
KINDS = {
    ".hpp": ("//", "/*"), ".cpp": ("//", "/*"), ".h": ("//", "/*"), ".c": ("//", "/*"), ".def": ("//", "/*"),
    ".py": ("#", '"""'), ".sh": ("#",), "dev": ("#",), "run": ("#",), "CMakeLists.txt": ("#",), ".fbs": ("//",),
    ".rs": ("//",),
}
# The public header is the manual: one file on purpose, its columns set by hand.
LONG_FILES = {"include/pickd/pickd.h"}
# Built from pieces, so that this file does not find itself.
MACHINE_PATHS = re.compile("|".join(["/ho" + "me/[a-z]", "/wo" + "rk/(?:main|shared)", "/Us" + "ers/[a-z]"]))


def kind_of(path):
    name = os.path.basename(path)
    return KINDS.get(name) or KINDS.get(os.path.splitext(name)[1])


def files(root):
    """What git tracks or would track; all of the tree where there is no git."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "-co", "--exclude-standard"],
                            capture_output=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
    else:
        names = [os.path.relpath(os.path.join(directory, name), root)
                 for directory, _, found in os.walk(root) for name in found if "/build/" not in directory + "/"]
    return sorted(name for name in set(names) if name and kind_of(name) and os.path.isfile(os.path.join(root, name)))


def has_first_comment(lines, starts):
    """The first line that is no directive for a tool begins a comment with words."""
    body = [line for line in lines if line.strip() and not line.startswith("#!")]
    return bool(body) and body[0].startswith(starts) and bool(re.search(r"[A-Za-z]{3}", "".join(body[:3])))


def check_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as text:
        lines = text.read().split("\n")
    if len(lines) - 1 > LINES_MAX and path not in LONG_FILES:
        yield f"{path}:1: {len(lines) - 1} lines; at most {LINES_MAX}: split it, one concept a file"
    # A .cpp beside a header of its name is introduced there.
    introduced = path.endswith(".cpp") and os.path.exists(os.path.join(root, path[:-4] + ".hpp"))
    if not introduced and not has_first_comment(lines, kind_of(path)):
        yield f"{path}:1: no first comment; say what the file is for and what it may not know"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX and path not in LONG_FILES and not path.endswith((".py", ".txt", ".def", ".fbs")):
            yield f"{path}:{number}: {len(line)} columns; at most {COLUMNS_MAX}"
        if "\t" in line:
            yield f"{path}:{number}: a tab; use spaces"
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"
        if MACHINE_PATHS.search(line):
            yield f"{path}:{number}: the name of a place on one machine"


def wrap_line(line, following):
    """What a line that is too long becomes, with the line after it; None if it must be mended by hand."""
    rule = re.match(r"(\s*// ---- .*\S )-+$", line)
    if rule:
        return [rule.group(1) + "-" * (COLUMNS_MAX - len(rule.group(1))), following]
    match = re.match(r"(\s*//+ )(\s*)(\S.*)$", line)
    if not match:
        # A comment behind code goes above it.
        match = re.match(r"(\s*)([^\s/\"][^\"]*?\S)\s+(// [^\"]*)$", line)
        return [match.group(1) + match.group(3), match.group(1) + match.group(2), following] if match else None
    head = match.group(1) + match.group(2)
    cut = line.rfind(" ", len(head), COLUMNS_MAX + 1)
    if cut < 0:
        return None
    rest = line[cut + 1:]
    # The same paragraph goes on if the next line is indented alike and neither is part of a list or drawing.
    if not match.group(2) and following.startswith(head) and re.match(r"[A-Za-z0-9(`\"'$]", following[len(head):]):
        return [line[:cut], head + rest + " " + following[len(head):]]
    return [line[:cut], head + rest, following]


def wrap_comments(text):
    lines, index = text.split("\n"), 0
    while index + 1 < len(lines):
        wrapped = wrap_line(lines[index], lines[index + 1]) if len(lines[index]) > COLUMNS_MAX else None
        if wrapped and len(wrapped[0]) < len(lines[index]):
            lines[index:index + 2] = wrapped
        # A comment that was put above its code may still be too long.
        if not wrapped or len(lines[index]) <= COLUMNS_MAX:
            index += 1
    return "\n".join(lines)


def fix(root, only):
    for path in files(root):
        if not path.endswith((".hpp", ".cpp")) or (only and not path.startswith(tuple(only))):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        wrapped = wrap_comments(text)
        if wrapped != text:
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(wrapped)
            print(f"wrapped {path}")


def main():
    if sys.argv[1] == "--fix":
        fix(sys.argv[2], sys.argv[3:])
        return 0
    paths = files(sys.argv[1])
    mistakes = [line for path in paths for line in check_file(sys.argv[1], path)]
    for line in mistakes:
        print(line)
    print(f"style: {len(paths)} files, {len(mistakes)} mistakes")
    return 1 if mistakes or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
