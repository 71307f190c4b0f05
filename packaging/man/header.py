"""Reads a public header, include/pickd/pickd.h or body.h: its opening comment, its sections, functions and structs.

The header is the manual; this knows its layout (comment above declarations, sections ruled with dashes)
and fails where a declaration has no comment, so that no page can be empty.
"""
import re
from dataclasses import dataclass, field


@dataclass
class Function:
    name: str
    declaration: str  # "int pickd_open(const pickd_options *options, pickd_client **client)"
    comment: str  # of its group, paragraphs kept
    aside: str  # what stands behind the declaration on its line
    section: str
    group: list = field(default_factory=list)  # names that share the comment


@dataclass
class Header:
    title: str
    example: str
    rules: list  # (word, text) of "What holds for every function here"
    errors: list  # (name, text)
    functions: list
    structs: dict  # name -> source text
    library: str  # "pickd", "pickd-body"


def strip_comment(text):
    """The words of a block comment: no stars, indentation beyond the first blank kept."""
    text = re.sub(r"^/\*", "  ", text)
    text = re.sub(r"\*/$", "", text.rstrip())
    lines = [re.sub(r"^ {0,2}\*? ?", "", line).rstrip() for line in text.split("\n")]
    return "\n".join(lines).strip("\n")


def indented_list(text, indent):
    """Lines "   word  text" with what continues them, as (word, text)."""
    entries = []
    for line in text.split("\n"):
        match = re.match(rf" {{{indent}}}(\S+) +(\S.*)", line)
        if match:
            entries.append([match.group(1), match.group(2)])
        elif entries and line.strip():
            entries[-1][1] += " " + line.strip()
    return [(word, re.sub(r" {2,}(HTTP)", r" (\1", text) + (")" if re.search(r" {2,}HTTP", text) else ""))
            for word, text in entries]


def read_opening(comment):
    title = re.search(r"^(libpickd(?:-\w+)?: .*)$", comment, re.M).group(1)
    example = re.search(r"\n\n((?: {2,}.*\n)+)\n", comment).group(1)
    rules, errors = (re.search(rf"{heading}\n\n(.*?)(?:\n\n|\Z)", comment, re.S).group(1)
                     for heading in (r"What holds for every function here", r"Error values and what[^\n]*"))
    return title, example, indented_list(rules, 2), indented_list(errors, 2)


def read_functions(source):
    functions, section, comment = [], "", ""
    token = re.compile(r"/\* -{4} (?P<section>.*?) -+ \*/|(?P<comment>/\*.*?\*/)|(?P<break>\n\n)|"
                       r"PICKD_API (?P<declaration>[^;]*);(?P<aside>[ ]*/\*[^\n]*\*/)?", re.S)
    group = []
    for match in token.finditer(source):
        if match["section"]:
            section, comment = match["section"], ""
        elif match["comment"]:
            # A comment that another follows, or code, belongs to that; only the last one counts.
            comment, group = strip_comment(match["comment"]), []
        elif match["declaration"]:
            declaration = " ".join(match["declaration"].split())
            name = re.search(r"\b(pickd_\w+)\s*\(", declaration).group(1)
            if not comment:
                raise ValueError(f"{name} has no comment above it")
            aside = strip_comment(match["aside"].strip()).strip() if match["aside"] else ""
            group.append(name)
            functions.append(Function(name, declaration, comment, aside, section, group))
        elif match["break"]:
            comment, group = "", []
    return functions


def read_structs(source):
    found = {}
    for match in re.finditer(r"typedef (?:struct|enum) (\w+) \{.*?\n\} \1;", source, re.S):
        found[match.group(1)] = match.group(0)
    return found


def read_examples(path):
    """The functions of a C file by their bodies: whole texts, each an example of what it calls."""
    with open(path, encoding="utf-8") as text:
        source = text.read()
    return re.findall(r"^\w[^\n;]*\)\s\{\n.*?\n\}\n", source, re.M | re.S)


def read_header(path):
    with open(path, encoding="utf-8") as text:
        source = text.read()
    opening = strip_comment(source[: source.index("*/") + 2])
    title, example, rules, errors = read_opening(opening)
    start = source.find("#define PICKD_API\n#endif")  # where it is defined; a header that includes that one has none
    body = source[start if start >= 0 else source.index("#ifdef __cplusplus\nextern"):]
    library = title.split(":")[0].removeprefix("lib")
    return Header(title, example, rules, errors, read_functions(body), read_structs(body), library)
