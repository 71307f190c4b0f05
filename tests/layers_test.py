#!/usr/bin/env python3
"""Fails on an include that breaks the order of the folders, or on a cycle of includes.

The order is the one line of daemon/README.md that holds arrows; it is read, not repeated here. Beside that
the daemon may include the contract: abi/ and include/pickd. abi/ includes abi/ only; libclient/ abi/,
include/pickd and libclient/ only; tools/ anything but daemon/main. First proves itself on a made-up tree.

Usage: layers_test.py SOURCE_DIR [BINARY_DIR]
"""
import os
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(pickd/[^>]+)>)')
SUFFIXES = (".h", ".hpp", ".c", ".cpp", ".def")
ROOTS = ("abi", "daemon", "include", "libclient", "tools", "tests", "examples", "libbody")


def read_order(readme):
    """The list of groups, left to right, of the line with arrows."""
    for line in open(readme, encoding="utf-8"):
        if line.startswith("    ") and "->" in line:
            groups = [part.strip(" {}\n") for part in line.split("->")]
            return [[name.strip() for name in group.split(",")] for group in groups]
    raise SystemExit(f"{readme}: the line with the include order (indented, with ->) is missing")


def sources(root):
    for top in ROOTS:
        for directory, folders, files in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(files):
                if name.endswith(SUFFIXES):
                    yield os.path.relpath(os.path.join(directory, name), root)


def includes(root, path):
    """(line number, what is included as a path from the root) of one file. System headers are left out."""
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as text:
        for number, line in enumerate(text, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1) or "include/" + match.group(2)
            if target.startswith("pickd/"):
                target = "include/" + target
            beside = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if not os.path.exists(os.path.join(root, target)) and os.path.exists(os.path.join(root, beside)):
                target = beside
            yield number, os.path.normpath(target)


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("daemon", "include") and len(parts) > 2 else parts[0]


def is_ours(target):
    return target.split("/")[0] in ROOTS


def mistake(source, target, rank):
    """Why `source` may not include `target`, or None."""
    here, there = folder_of(source), folder_of(target)
    if here == there or not is_ours(target):
        return None
    if here == "abi":
        return "abi/ may include only abi/"
    if here == "include/pickd":
        return "the public headers may include only each other"
    if here == "libclient":
        return None if there in ("abi", "include/pickd") else "libclient/ may include only abi/, include/pickd and libclient/"
    if here == "libbody":
        return None if there in ("abi", "include/pickd") else "libbody/ may include only abi/, include/pickd and libbody/"
    if here == "tools":
        return "tools/ may include anything but daemon/main" if there == "daemon/main" else None
    if here.startswith("daemon/"):
        if there in ("abi", "include/pickd"):
            return None
        if not there.startswith("daemon/"):
            return "the daemon may include only abi/, include/pickd and daemon/"
        name, other = here[len("daemon/"):], there[len("daemon/"):]
        for folder in (name, other):
            if folder not in rank:
                return f"daemon/{folder} is not in the list of daemon/README.md"
        if rank[other] <= rank[name]:
            return f"{name} may include only what stands to the right of it in daemon/README.md"
    return None


def find_cycle(graph):
    """One cycle of files as a list, or an empty one. Iterative: a deep chain must not end the test."""
    state = {}
    for start in sorted(graph):
        if start in state:
            continue
        path, work = [start], [iter(graph[start])]
        state[start] = "open"
        while work:
            following = next(work[-1], None)
            if following is None:
                state[path.pop()] = "done"
                work.pop()
            elif state.get(following) == "open":
                return path[path.index(following):] + [following]
            elif following not in state and following in graph:
                state[following] = "open"
                path.append(following)
                work.append(iter(graph[following]))
    return []


def check(root):
    """All mistakes of a tree, as lines of text; and how many includes were looked at."""
    order = read_order(os.path.join(root, "daemon/README.md"))
    rank = {name: place for place, group in enumerate(order) for name in group}
    mistakes, graph, count = [], {}, 0
    for source in sources(root):
        graph[source] = []
        for number, target in includes(root, source):
            if not is_ours(target):
                continue
            count += 1
            graph[source].append(target)
            why = mistake(source, target, rank)
            if why:
                mistakes.append(f"{source}:{number}: includes {target}; {why}")
    cycle = find_cycle(graph)
    if cycle:
        mistakes.append("a cycle of includes: " + " -> ".join(cycle))
    return mistakes, count


def self_test():
    """A tree with one of each mistake gives these and no others; a clean one gives none."""
    clean = {
        "daemon/README.md": "words\n\n    main -> { a, b } -> base\n",
        "abi/x.hpp": '#include "abi/y.hpp"\n',
        "abi/y.hpp": "#include <vector>\n",
        "include/pickd/pickd.h": "#include <stdint.h>\n",
        "libclient/c.cpp": '#include "abi/x.hpp"\n#include "pickd/pickd.h"\n#include <pickd/pickd.h>\n#include "own.h"\n',
        "libclient/own.h": "",
        "daemon/main/main.cpp": '#include "daemon/a/a.hpp"\n#include "daemon/base/b.hpp"\n',
        "daemon/a/a.hpp": '#include "abi/x.hpp"\n#include "daemon/base/b.hpp"\n',
        "daemon/b/b.hpp": '#include "daemon/base/b.hpp"\n#include "pickd_generated.h"\n',
        "daemon/base/b.hpp": "",
        "tools/t.cpp": '#include "daemon/a/a.hpp"\n',
    }
    broken = dict(clean)
    broken.update({
        "abi/y.hpp": '#include "daemon/base/b.hpp"\n',
        "libclient/own.h": '\n#include "daemon/base/b.hpp"\n',
        "daemon/b/b.hpp": '#include "daemon/a/a.hpp"\n',
        "daemon/base/b.hpp": '#include "daemon/a/a.hpp"\n',
        "daemon/c/c.hpp": '#include "daemon/base/b.hpp"\n',
        "daemon/a/more.cpp": '#include "pickd/pickd.h"\n#include "tools/t.hpp"\n',
        "tools/t.cpp": '#include "daemon/main/main.hpp"\n',
    })
    expected = ["abi/y.hpp:1:", "daemon/a/more.cpp:2:", "daemon/b/b.hpp:1:", "daemon/base/b.hpp:1:",
                "daemon/c/c.hpp:1:", "libclient/own.h:2:", "tools/t.cpp:1:", "a cycle of includes:"]

    for tree, wanted in ((clean, []), (broken, expected)):
        with tempfile.TemporaryDirectory() as root:
            for path, text in tree.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            found, _ = check(root)
            missing = [start for start in wanted if not any(line.startswith(start) for line in found)]
            if missing or len(found) != len(wanted):
                raise SystemExit(f"self-test: wanted {wanted}, found {found}")


def main():
    self_test()
    mistakes, count = check(sys.argv[1])
    for line in mistakes:
        print(line)
    print(f"layers: {count} includes, {len(mistakes)} mistakes")
    return 1 if mistakes or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
