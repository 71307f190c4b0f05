#!/usr/bin/env python3
"""Writes the source of the man page pickd.yaml(5), for scdoc, from the commented packaging/pickd.yaml.

Usage: make_config_page.py PICKD_YAML VERSION_HEADER OUTPUT.scd
pickd.yaml is itself made from the table of settings, so the page says what the daemon does.
"""
import re
import sys

INTRODUCTION = """
*pickd --config* _FILE_ reads one YAML file; without it, the file that *PICKD_CONFIG* names; without that,
the defaults below hold. The service reads */etc/pickd/pickd.yaml*.

The file is strict: an unknown key, a key that stands twice, a wrong type, a number out of range and a
reference to nothing are refused, each with file, line, key and what would be right.
*pickd --check-config* _FILE_ says all that is wrong, *pickd --print-config* what is in force and where each
value came from.

A setting with one value can be set from the environment too, which wins over the file. The variable
stands with each setting.

A duration has its unit: 500us, 500ms, 45s, 30min, 1h, 1h30min.
"""

CLOSING = """
# FILES

*/etc/pickd/pickd.yaml*
\tThe configuration of the service; every setting is there as a comment.

# SEE ALSO

*pickd*(8), *pickctl*(1)
"""


def escape(text):
    """Plain text for scdoc."""
    return re.sub(r"([\\*_`#\[\]<>~|])", r"\\\1", text)


def unwrap(lines):
    return re.sub(r"\s+", " ", " ".join(lines)).strip()


def blocks(text):
    """Groups of lines that blank lines separate, without the first '#' of each line."""
    for part in re.split(r"\n{2,}", text.strip("\n")):
        yield [re.sub(r"^#", "", line) for line in part.split("\n")]


def setting(block):
    """(key, value, text, range) of a block that holds one setting, or None."""
    entry = re.fullmatch(r" *([A-Za-z_]+):(?: (.*))?", block[-1])
    comments = [re.sub(r"^ *# ?", "", line) for line in block[:-1]]
    if entry is None or not comments or not all(re.match(r" *#", line) for line in block[:-1]):
        return None
    value, _, default = (entry.group(2) or "").partition("  # default: ")
    return entry.group(1), default or value, unwrap(comments[:-1]), comments[-1]


def item_keys(block):
    """(key, text) of the lines that describe the keys of a list's items."""
    found = []
    for line in block:
        begun = re.match(r"    # ([a-z_]+): (.*)", line)
        if begun and not (found and found[-1][1][-1].endswith(" default")):  # "default empty: ..." may be wrapped
            found.append([begun.group(1), [begun.group(2)]])
        elif found and re.match(r"    # ", line):
            found[-1][1].append(line[6:])
    return [(key, unwrap(text)) for key, text in found]


def example(block):
    """Lines of a block that are YAML and not a comment."""
    return [line for line in block if line.strip() and not re.match(r" *#", line) and line.startswith("  ")]


def page(text):
    made, section = [], ""
    for block in list(blocks(text))[1:]:
        head = re.fullmatch(r"([A-Za-z]+):", block[-1]) or re.fullmatch(r"([a-z]+):", block[0])
        said = [line.strip() for line in block if re.match(r" [^ ]", line)]
        one = setting(block)
        if one and (block[-1].startswith("  ") or one[1]):
            key, value, what, bounds = one
            name = f"{section}.{key}" if block[-1].startswith("  ") else key
            limits, _, variable = bounds.partition("; PICKD_")
            made.append(f"*{escape(name)}*" + (f" (*PICKD\\_{escape(variable)}*)" if variable else ""))
            default = "" if value in ('""', "") else f" Default: {escape(value)}."
            made.append(f"\t{escape(what)}\n\tRange: {escape(limits)}.{default}\n")
        elif head:
            section = head.group(1)
            made.append(f"# {section.upper()}\n")
            made.append(escape(unwrap(said)) + "\n")
        elif said:
            made.append(escape(unwrap(said)) + "\n")
        for key, what in item_keys(block):
            made.append(f"*{escape(key)}*\n\t{escape(what)}\n")
        shown = example(block) if not one else []
        if shown:
            made.append("```\n" + "\n".join(shown) + "\n```\n")
    return "\n".join(made)


def main():
    yaml, header, output = sys.argv[1:4]
    with open(header, encoding="utf-8") as text:
        version = ".".join(re.findall(r"#define PICKD_VERSION_\w+ (\d+)", text.read()))
    with open(yaml, encoding="utf-8") as text:
        body = page(text.read())
    with open(output, "w", encoding="utf-8") as out:
        out.write(f'pickd.yaml(5) "" "pickd {version}"\n\n# NAME\n\n'
                  "pickd.yaml - configuration of the endpoint picker pickd\n\n# DESCRIPTION\n"
                  + INTRODUCTION + "\n" + body + CLOSING)
    return 0


if __name__ == "__main__":
    sys.exit(main())
