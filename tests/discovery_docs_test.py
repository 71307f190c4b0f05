#!/usr/bin/env python3
"""Holds docs/discovery.md to the truth: each configuration in it is one that pickd accepts, each endpoint
file one that it reads, every file it points to exists; and the RBAC manifest grants reading and nothing else.

Usage: discovery_docs_test.py SOURCE_DIR BINARY_DIR
"""
import os
import re
import subprocess
import sys
import tempfile


def blocks(text):
    """(language and words behind it, text) of each code block."""
    return re.findall(r"```([^\n]+)\n(.*?)```", text, re.DOTALL)


def refusal(binary, text):
    """What pickd says against a configuration; empty when nothing."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        checked = subprocess.run([os.path.join(binary, "bin/pickd"), "--check-config", file.name],
                                 capture_output=True, text=True, check=False)
        return checked.stderr if checked.returncode != 0 else ""


def main():
    source, binary = sys.argv[1], sys.argv[2]
    with open(os.path.join(source, "docs/discovery.md"), encoding="utf-8") as file:
        page = file.read()
    mistakes, configurations, files = [], 0, 0

    for kind, text in blocks(page):
        # An endpoint file's entries are the configuration's own; JSON is YAML.
        wrong = refusal(binary, text)
        if wrong:
            mistakes.append(f"docs/discovery.md: a block ({kind}) is refused: {wrong}")
        configurations += kind == "yaml"
        files += kind.endswith("endpoints")
    if configurations < 6 or files < 2:
        mistakes.append(f"docs/discovery.md: {configurations} configurations and {files} endpoint files are too few")
    if not refusal(binary, "pools: [{name: a, discovery: {}}]\n"):
        mistakes.append("pickd accepts a discovery without a source, so this test shows nothing")

    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page):
        if "://" not in target and not os.path.exists(os.path.join(source, "docs", target)):
            mistakes.append("docs/discovery.md points to " + target + ", which does not exist")

    with open(os.path.join(source, "packaging/kubernetes/rbac.yaml"), encoding="utf-8") as file:
        manifest = file.read()
    verbs = set(re.findall(r'verbs: \[(.*?)\]', manifest))
    if verbs != {'"get", "list", "watch"'}:
        mistakes.append(f"packaging/kubernetes/rbac.yaml grants {verbs}")
    for resource in ("endpointslices", "pods", "inferencepools"):
        if f'resources: ["{resource}"]' not in manifest:
            mistakes.append("packaging/kubernetes/rbac.yaml does not name " + resource)
    if "ClusterRole" in manifest or '"*"' in manifest or "secrets" in manifest:
        mistakes.append("packaging/kubernetes/rbac.yaml grants more than one namespace's reading")

    for mistake in mistakes:
        print(mistake)
    print(f"discovery docs: {configurations} configurations, {files} endpoint files, {len(mistakes)} mistakes")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
