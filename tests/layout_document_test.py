#!/usr/bin/env python3
"""abi/LAYOUT.md names every field of the shared structs at its offset, and every control message.

Usage: layout_document_test.py SOURCE_DIR BINARY_DIR
Reads the structs out of the headers and the messages out of pickd.fbs, and looks for both in the document: a
field that was added, moved or renamed and is not in the document fails. tests/abi holds the offsets themselves.
Exit 77: skipped, because there is no C++ compiler to ask for offsets.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Struct, its header, and the line of LAYOUT.md with which its description begins.
STRUCTS = [
    ("SegmentHeader", "segment.hpp", "## 2. Every segment"),
    ("KeyAlgorithm", "key.hpp", "`KeyAlgorithm`: "),
    ("StateHeader", "state_layout.hpp", "### 3.1 Header"),
    ("WorkerWord", "state_layout.hpp", "**Worker word**"),
    ("EndpointRecord", "state_layout.hpp", "### 3.2 Endpoint record"),
    ("Reservation", "state_layout.hpp", "### 3.3 Reservation"),
    ("ChannelHeader", "channel_layout.hpp", "## 4. A channel segment"),
    ("RingIndices", "channel_layout.hpp", " indices      512 bytes"),
    ("RecordHead", "channel_layout.hpp", "### 4.2 Records"),
    ("PickRecord", "channel_layout.hpp", "**Pick** (submission"),
    ("FieldHead", "channel_layout.hpp", " then    fields, field_bytes in all"),
    ("PickedRecord", "channel_layout.hpp", "**Picked** (completion"),
    ("PickedEndpoint", "channel_layout.hpp", " @40 endpoints, 24 bytes each"),
    ("ReportRecord", "channel_layout.hpp", "**Report** (submission"),
    ("ReportedRecord", "channel_layout.hpp", "**Reported** (completion"),
]
# What the document calls by another word, or describes as part of a whole.
OTHER_WORDS = {"bytes": "bytes", "head": None, "segment": None, "reserved": None, "reserved1": None,
               "reserved2": None, "key_algorithms": "KeyAlgorithm[8]"}


def fields_of(source, struct, header):
    """Names of the members of a struct, as its definition stands."""
    with open(os.path.join(source, "abi", header), encoding="utf-8") as file:
        text = file.read()
    body = re.search(rf"\bstruct (?:alignas\(\w+\) )?{struct} {{\n(.*?)\n}};", text, re.S)
    if body is None:
        raise RuntimeError(f"{header} has no struct {struct}")
    for line in body.group(1).splitlines():
        line = re.sub(r"//.*", "", line).strip()
        found = re.fullmatch(r"(?:alignas\(\w+\) )?[\w:<>]+ (\w+)(?:\[[^\]]*\])?;", line)
        if found:
            yield found.group(1)


def offsets(source, wanted):
    """{(struct, field): offset} as the compiler has them."""
    lines = ['#include <cstddef>', '#include <cstdio>', '#include "abi/channel_layout.hpp"',
             '#include "abi/state_layout.hpp"', 'using namespace pickd::abi;', 'int main() {']
    lines += [f'std::printf("{struct} {field} %zu\\n", offsetof({struct}, {field}));' for struct, field in wanted]
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "offsets")
        with open(path + ".cpp", "w", encoding="utf-8") as file:
            file.write("\n".join(lines + ["}"]))
        subprocess.run([shutil.which("c++"), "-std=c++20", "-I", source, "-o", path, path + ".cpp"], check=True)
        said = subprocess.run([path], capture_output=True, text=True, check=True).stdout
    return {(line.split()[0], line.split()[1]): int(line.split()[2]) for line in said.splitlines()}


def described(text, name, offset):
    """Whether `text` has a field of this name behind @offset, or in a list that runs on from one before it."""
    word = re.escape(OTHER_WORDS.get(name, name))
    if re.search(rf"@{offset}\s+(?:\w+ +)?{word}(?!\w)", text):
        return True
    # "u64 name, and, each a u64: @376 other_name, @384 ..." and "@0 u64 handle  @8 u32 match_tokens".
    return re.search(rf"@{offset} [^@\n]*\b{word}(?!\w)", text) is not None


def main():
    source = sys.argv[1]
    if shutil.which("c++") is None:
        print("there is no c++ to ask for offsets")
        return 77
    with open(os.path.join(source, "abi/LAYOUT.md"), encoding="utf-8") as file:
        document = file.read()
    with open(os.path.join(source, "abi/pickd.fbs"), encoding="utf-8") as file:
        schema = file.read()
    mistakes = []
    wanted = [(struct, field) for struct, header, _ in STRUCTS for field in fields_of(source, struct, header)]
    places = offsets(source, wanted)
    checked = 0
    for struct, _, begins in STRUCTS:
        at = document.find(begins)
        if at < 0:
            mistakes.append(f"LAYOUT.md has no line {begins!r}, where {struct} is described")
            continue
        # To the next heading: a struct's description ends there at the latest.
        end = document.find("\n## ", at + 1)
        for named, field in wanted:
            if named != struct or OTHER_WORDS.get(field, field) is None:
                continue
            checked += 1
            if not described(document[at:end], field, places[struct, field]):
                mistakes.append(f"{struct}.{field} is at byte {places[struct, field]}; LAYOUT.md does not say so")
    union = re.search(r"union Body {(.*?)}", schema, re.S).group(1)
    messages = re.findall(r"\w+", union)
    section = document[document.index("## 7. The control socket"):document.index("## 8. Fixed limits")]
    for message in messages:
        checked += 1
        if not re.search(rf"\b{message}\b", section):
            mistakes.append(f"control message {message} is not in section 7 of LAYOUT.md")
    for mistake in mistakes:
        print(mistake)
    print(f"{checked} fields and messages looked for, {len(mistakes)} not as LAYOUT.md says")
    return 1 if mistakes or checked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
