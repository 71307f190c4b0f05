#!/usr/bin/env python3
"""Makes the man pages: section 3 from the public headers, pages of programs from their --help.

Usage: make_pages.py functions HEADER OUTPUT_DIR         pickd.3 or pickd-body.3, and a page a public function
       make_pages.py program NAME SECTION PROGRAM OUTPUT_FILE
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from header import read_examples, read_header  # noqa: E402

# Of each library: its header, the file of its examples, what puts its errors into words.
LIBRARIES = {"pickd": ("pickd.h", "examples.c", "pickd_strerror"),
             "pickd-body": ("body.h", "body_examples.c", "pickd_body_strerror")}


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def literal(text):
    return ".PP\n.in +4n\n.nf\n" + escape(text.strip("\n")) + "\n.fi\n.in\n"


def dedent(text):
    lines = text.strip("\n").split("\n")
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[least:] for line in lines)


def paragraphs(text):
    """Prose becomes paragraphs; what is indented by two blanks or more stays as it is laid out."""
    made = []
    for part in re.split(r"\n\n+", text.strip("\n")):
        run, laid_out = [], None
        for line in part.split("\n"):
            if (line.startswith("  ")) != laid_out and run:
                made.append((laid_out, run))
                run = []
            laid_out = line.startswith("  ")
            run.append(line)
        made.append((laid_out, run))
    return "".join(literal(dedent("\n".join(run))) if laid_out else
                   ".PP\n" + escape("\n".join(run)) + "\n" for laid_out, run in made)


def first_sentence(text):
    flat = " ".join(text.split("\n\n")[0].split())
    sentence = re.split(r"(?<=[a-z)\]])[.:;](?: |$)", flat)[0]
    sentence = re.sub(r"^(An?|The) ", lambda match: match.group(0).lower(), sentence)
    return sentence[0].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def top(name, section, version):
    return (f'.\\" Made by packaging/man/make_pages.py; change its source, not this.\n'
            f'.TH {name.upper().replace("-", chr(92) + "-")} {section} "" "pickd {version}" "pickd manual"\n')


def see_also(names):
    return ".SH SEE ALSO\n" + ",\n".join(f".BR {name} ({section})".replace("-", "\\-")
                                         for name, section in names).replace(",\n.BR", " ,\n.BR") + "\n"


def named_errors(comment, by_name):
    """Error values that the comment names, in its order, and those of functions it points to."""
    names = re.findall(r"-E[A-Z0-9]+", comment)
    for other in re.findall(r"(?:as|of the arguments of) (pickd_\w+)\(\)", comment):
        if other in by_name:
            names += re.findall(r"-E[A-Z0-9]+", by_name[other].comment)
    return list(dict.fromkeys(names))


def return_value(function, errors, words):
    returned = re.findall(r"Returns?\b[^.]*\.", function.comment.replace("\n", " "))
    if returned:
        return " ".join(returned)
    kind = function.declaration.split(function.name)[0].strip()
    if kind == "void":
        return "None."
    if kind == "int" and errors:
        return f"0 on success, else a negative errno value; {words}(3) puts it into words."
    if function.aside:
        return function.aside[0].upper() + function.aside[1:] + "."
    return first_sentence(function.comment)[0].upper() + first_sentence(function.comment)[1:] + "."


def thread_rule(function):
    """Who may call it when: as the comment says, else as the opening comment says of its handle."""
    said = re.search(r"([^.]*\bthread\b[^.]*)\.", function.comment.replace("\n", " "))
    if said:
        return said.group(1).strip() + "."
    if "pickd_queue *" in function.declaration or "pickd_result *" in function.declaration:
        handle = "queue" if "pickd_queue *" in function.declaration else "result"
        return f"A {handle} belongs to one thread at a time."
    return "Any thread, any number at once."


def shortest_example(function, examples):
    fitting = [example for example in examples if re.search(rf"\b{function.name}\(", example)]
    return min(fitting, key=len) if fitting else None


def function_page(header, function, version, examples):
    by_name = {other.name: other for other in header.functions}
    words = dict(header.errors)
    page = top(function.name, 3, version)
    page += f".SH NAME\n{function.name} \\- {escape(function.aside or first_sentence(function.comment))}\n"
    file, _, strerror = LIBRARIES[header.library]
    page += f".SH SYNOPSIS\n.nf\n.B #include <pickd/{file}>\n.PP\n"
    page += f".B {escape(function.declaration)};\n.fi\n.PP\nLink with \\fI\\-l{escape(header.library)}\\fP.\n"
    page += ".SH DESCRIPTION\n" + paragraphs(function.comment)
    errors = named_errors(function.comment, by_name)
    page += ".SH RETURN VALUE\n" + escape(return_value(function, errors, strerror)) + "\n"
    if errors:
        page += ".SH ERRORS\n"
        for name in errors:
            page += f".TP\n.B {escape(name)}\n{escape(words.get(name, 'See DESCRIPTION.'))}\n"
    structs = [header.structs[kind] for kind in re.findall(r"pickd_\w+", function.declaration)
               if kind in header.structs]
    if structs:
        page += ".SH TYPES\n" + "".join(literal(struct) for struct in dict.fromkeys(structs))
    page += ".SH THREADS\n" + escape(thread_rule(function)) + "\n"
    example = shortest_example(function, [dedent(header.example), *examples])
    if example is None:
        raise ValueError(f"packaging/man/{LIBRARIES[header.library][1]} does not show {function.name}")
    page += ".SH EXAMPLE\n" + literal(example)
    others = [name for name in function.group if name != function.name][:8]
    return page + see_also([(header.library, 3)] + [(name, 3) for name in others] + [("pickd", 8)])


def overview_page(header, version):
    page = top(header.library, 3, version)
    file = LIBRARIES[header.library][0]
    page += f".SH NAME\nlib{escape(header.library)} \\- " + escape(header.title.split(": ", 1)[1].rstrip(".")) + "\n"
    page += f".SH SYNOPSIS\n.nf\n.B #include <pickd/{file}>\n.PP\n.B cc program.c \\-l{escape(header.library)}\n.fi\n"
    page += ".SH DESCRIPTION\nWhat holds for every function of the library:\n"
    for word, text in header.rules:
        page += f".TP\n.B {escape(word)}\n{escape(text)}\n"
    page += ".SH FUNCTIONS\n"
    for section in dict.fromkeys(function.section for function in header.functions):
        page += f".SS {escape(section)}\n"
        for function in header.functions:
            if function.section == section:
                page += f".TP\n.BR {function.name} (3)\n{escape(function.aside or first_sentence(function.comment))}\n"
    page += ".SH ERRORS\nWhat each value means, and what a gateway makes of it:\n"
    for name, text in header.errors:
        page += f".TP\n.B {escape(name)}\n{escape(text)}\n"
    page += ".SH EXAMPLE\n" + literal(dedent(header.example))
    others = [(name, 3) for name in LIBRARIES if name != header.library]
    return page + see_also([*others, ("pickd", 8), ("pickctl", 1), ("pkg-config", 1)])


def version_of(path):
    with open(path, encoding="utf-8") as text:
        return ".".join(re.findall(r"#define PICKD_VERSION_\w+ (\d+)", text.read()))


def make_functions(header_path, directory):
    header = read_header(header_path)
    version = version_of(os.path.join(os.path.dirname(header_path), "pickd.h"))
    os.makedirs(directory, exist_ok=True)
    pages = {header.library: overview_page(header, version)}
    examples = read_examples(os.path.join(os.path.dirname(os.path.abspath(__file__)), LIBRARIES[header.library][1]))
    pages.update((function.name, function_page(header, function, version, examples))
                 for function in header.functions)
    for name, page in pages.items():
        with open(os.path.join(directory, name + ".3"), "w", encoding="utf-8") as out:
            out.write(page)


def help_of(program, *arguments):
    return subprocess.run([program, *arguments, "--help"], check=True, capture_output=True, text=True).stdout


def options(text):
    """The options of a --help text, each with what it says."""
    made, last = "", None
    for line in text.split("\n"):
        entry = re.match(r" {2}(-\S.*?)(?: {2,}(\S.*))?$", line)
        if entry:
            last = entry.group(2)
            name = re.sub(r"(TEXT|UINT|INT|FLOAT)(?::\1)?", r"\1", entry.group(1))
            made += f".TP\n.B {escape(name)}\n" + (escape(last) + "\n" if last else "")
        elif made and line.startswith("   ") and line.strip():
            made += escape(line.strip()) + "\n"
        elif made and not line.strip():
            break
    return made


def make_program(name, section, program, path):
    text = help_of(program)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.split()
    about = re.split(r"\n\s*\n|\nUsage:", text.strip())[0].strip()
    summary = re.sub(rf"^{name}: ", "", about.split("\n")[0]).rstrip(".")
    page = top(name, section, version[-1] if version else "")
    page += f".SH NAME\n{escape(name)} \\- {escape(summary)}\n"
    subcommands = re.findall(r"^  ([a-z][\w-]*) {2,}(\S.*)$", text.split("Subcommands:")[-1], re.M) \
        if "Subcommands:" in text else []
    page += f".SH SYNOPSIS\n.B {escape(name)}\n[options]{' subcommand [options]' if subcommands else ''}\n"
    page += ".SH DESCRIPTION\n" + paragraphs(about)
    page += ".SH OPTIONS\n" + options(text)
    if subcommands:
        page += ".SH SUBCOMMANDS\n"
        for word, what in subcommands:
            page += f".SS {escape(word)}\n{escape(what)}.\n" + options(help_of(program, word))
    codes = re.search(r"^Exit codes: (.*?)\.$", text, re.M)
    if codes:
        page += ".SH EXIT STATUS\n" + "".join(f".TP\n.B {code}\n{escape(what)}\n" for code, what in
                                              re.findall(r"(\d) (.*?)(?:, (?=\d)|$)", codes.group(1)))
    rest = text[codes.end():].strip() if codes else ""
    if rest:
        page += ".SH NOTES\n" + escape(rest) + "\n"
    family = [("pickd", 8), ("pickctl", 1), ("pickd-bench", 1), ("enginesim", 1), ("pickd", 3)]
    page += see_also([one for one in family if one != (name, int(section))])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(page)


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["functions"] and len(arguments) == 3:
        make_functions(*arguments[1:])
    elif arguments[:1] == ["program"] and len(arguments) == 5:
        make_program(*arguments[1:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
