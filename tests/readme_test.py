#!/usr/bin/env python3
"""Holds the README to the truth: its C program is examples/pick.c, its YAML is a configuration that pickd
accepts, and every file it points to exists.

Usage: readme_test.py SOURCE_DIR BINARY_DIR
"""
import os
import re
import subprocess
import sys
import tempfile


def blocks(text, language):
    return re.findall(r"```%s\n(.*?)```" % language, text, re.DOTALL)


def main():
    source, binary = sys.argv[1], sys.argv[2]
    with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    mistakes = []

    with open(os.path.join(source, "examples/pick.c"), encoding="utf-8") as file:
        example = file.read()
    if blocks(readme, "c") != [example]:
        mistakes.append("the C program in README.md is not examples/pick.c; copy it there")

    for yaml in blocks(readme, "yaml"):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(yaml)
            file.flush()
            checked = subprocess.run([os.path.join(binary, "bin/pickd"), "--check-config", file.name],
                                     capture_output=True, text=True, check=False)
            if checked.returncode != 0:
                mistakes.append("the YAML in README.md is refused: " + checked.stderr)

    for target in re.findall(r"\]\(([^)#]+)\)", readme):
        if "://" not in target and not os.path.exists(os.path.join(source, target)):
            mistakes.append("README.md points to " + target + ", which does not exist")
    for placeholder in ("DEMO_OUTPUT", "TEST_OUTPUT", "EXAMPLE\n"):
        if placeholder in readme:
            mistakes.append("README.md still holds " + placeholder.strip())

    for mistake in mistakes:
        print(mistake)
    print("readme: %d mistakes" % len(mistakes))
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
