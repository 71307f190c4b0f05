#!/usr/bin/env python3
"""Every public function has a man page made from its header, and no page has an error.

Usage: man_pages_test.py SOURCE_DIR BINARY_DIR
Makes section 3 anew, so it needs no build; pages of programs are looked at where they were built.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "THREADS", "EXAMPLE", "SEE ALSO")


def check_page(path):
    """What is wrong with one page of a function."""
    name = os.path.basename(path)[:-2]
    with open(path, encoding="utf-8") as text:
        page = text.read()
    for section in SECTIONS:
        if not re.search(rf"^\.SH {section}\n+[^.\s]|^\.SH {section}\n\.(?!SH)", page, re.M):
            yield f"{name}: nothing under {section}"
    summary = re.search(r"^\.SH NAME\n(.*)", page, re.M).group(1)
    if not re.fullmatch(rf"{name} \\- .{{3,}}", summary):
        yield f"{name}: no line for whatis: {summary!r}"
    if re.search(r"^\.B .*\b" + name + r"\(.*;$", page, re.M) is None:
        yield f"{name}: its declaration is not there"
    if re.search(rf"\b{name}\(", page.split(".SH EXAMPLE")[-1].split(".SH SEE ALSO")[0]) is None:
        yield f"{name}: its example does not call it"


def compile_examples(source):
    """Complaints of the compiler about the examples, as plain C11."""
    compiler = shutil.which("cc")
    for examples in ("examples.c", "body_examples.c") if compiler else ():
        done = subprocess.run([compiler, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                               "-I" + os.path.join(source, "include"),
                               os.path.join(source, "packaging/man", examples)],
                              capture_output=True, text=True, check=False)
        yield from done.stderr.splitlines()


def lint(path):
    """Complaints of the formatters that are installed."""
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-Tlint", "-Werror", path], capture_output=True, text=True, check=False)
        yield from done.stdout.splitlines()
    if shutil.which("man") and shutil.which("groff"):
        done = subprocess.run(["man", "--warnings=w", "-Tutf8", "-l", path], capture_output=True, text=True,
                              check=False, env={**os.environ, "MANWIDTH": "120", "LC_ALL": "C.UTF-8"})
        yield from done.stderr.splitlines()
        if done.returncode != 0 or not done.stdout.strip():
            yield f"{path}: man gave {done.returncode} and {len(done.stdout)} bytes"


def main():
    source, binary = sys.argv[1], sys.argv[2]
    mistakes = list(compile_examples(source))
    public = set()
    for library in ("libpickd", "libpickd-body"):
        with open(os.path.join(source, f"abi/{library}.map"), encoding="utf-8") as text:
            public |= set(re.findall(r"^\s*(pickd_\w+);", text.read(), re.M))
    with tempfile.TemporaryDirectory() as directory:
        for header in ("pickd.h", "body.h"):
            subprocess.run([sys.executable, os.path.join(source, "packaging/man/make_pages.py"), "functions",
                            os.path.join(source, "include/pickd", header), directory], check=True)
        pages = {os.path.basename(path)[:-2]: path for path in glob.glob(directory + "/*.3")}
        if set(pages) != public | {"pickd", "pickd-body"}:
            mistakes.append(f"a page without a function, or the other way: {set(pages) ^ public}")
        for name in sorted(public & set(pages)):
            mistakes += check_page(pages[name])
        programs = glob.glob(os.path.join(binary, "man/man[18]/*.[18]"))
        for path in [*pages.values(), *programs]:
            mistakes += lint(path)
    for mistake in mistakes:
        print(mistake)
    tools = [tool for tool in ("man", "mandoc") if shutil.which(tool)]
    print(f"{len(pages)} pages of functions, {len(programs)} of programs, looked at with {tools or 'no formatter'}: "
          f"{len(mistakes)} mistakes")
    return 1 if mistakes or not public else 0


if __name__ == "__main__":
    sys.exit(main())
