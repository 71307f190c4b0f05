#!/usr/bin/env python3
"""Every test that docs/threat-model.md names exists, and every setting too.

Usage: threat_model_test.py SOURCE_DIR [BINARY_DIR]
"""
import glob
import os
import re
import sys


def main():
    source = sys.argv[1]
    with open(os.path.join(source, "docs/threat-model.md"), encoding="utf-8") as text:
        words = re.findall(r"`([^`\n]+)`", text.read())
    tests, settings = set(), ""
    for path in glob.glob(os.path.join(source, "tests/*/**/*.cpp"), recursive=True):
        with open(path, encoding="utf-8") as text:
            tests.update(".".join(found) for found in
                         re.findall(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", text.read(), re.M))
    with open(os.path.join(source, "daemon/config/settings.cpp"), encoding="utf-8") as text:
        settings = set(re.findall(r'\{"([a-z_]+\.[a-z_]+)", AT', text.read()))
    named = [word for word in words if re.fullmatch(r"[A-Z]\w+\.[A-Z]\w+", word)]
    set_here = [word for word in words if re.fullmatch(r"(listen|state|workers|reservations|scrape|admin)\.[a-z_]+", word)]
    missing = [name for name in named if name not in tests] + [name for name in set_here if name not in settings]
    for name in missing:
        print(f"docs/threat-model.md names {name}; there is no such test or setting")
    print(f"threat model: {len(set(named))} tests and {len(set(set_here))} settings named, {len(missing)} missing")
    return 1 if missing or not named or not set_here else 0


if __name__ == "__main__":
    sys.exit(main())
