#!/usr/bin/env python3
"""The dashboard and the alert rules of packaging/ against a live page of metrics: each metric that they name is there,
and promtool finds nothing wrong with the page and the rules.

Usage: admin_metrics_test.py SOURCE_DIR BINARY_DIR; 77: there is no promtool (Debian's package prometheus)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

import demo_page

NAME = re.compile(r"\bpickd_[a-z0-9_]+")


def samples(page):
    return {NAME.match(line).group() for line in page.splitlines() if NAME.match(line)}


def expressions(dashboard):
    """All queries of a dashboard, those of its variables too."""
    found = [variable["query"]["query"] for variable in dashboard["templating"]["list"] if isinstance(variable["query"], dict)]
    for panel in dashboard["panels"]:
        found += [target["expr"] for target in panel.get("targets", [])]
    return found


def wait_for(demo, metric):
    """The page, once a metric has a sample above 0."""
    until = time.monotonic() + 120
    while True:
        page = demo.get("/metrics")
        if re.search(rf"^{metric}(\{{.*\}})? [1-9]", page, re.MULTILINE):
            return page
        if time.monotonic() > until:
            raise SystemExit(f"{metric} stays at 0")
        time.sleep(.1)


def main():
    source, binaries = sys.argv[1], sys.argv[2]
    mistakes = []
    dashboard_path = os.path.join(source, "packaging/grafana/pickd.json")
    rules_path = os.path.join(source, "packaging/prometheus/pickd.rules.yml")
    with open(dashboard_path, encoding="utf-8") as file:
        dashboard = json.load(file)
    with open(rules_path, encoding="utf-8") as file:
        rules = file.read()
    promtool = shutil.which("promtool")
    with demo_page.Demo(binaries, "--scale", "0.3") as demo:
        page = wait_for(demo, "pickd_ttft_seconds_count")
        open_page = demo.get("/metrics", "application/openmetrics-text;version=1.0.0")
        code = demo.stop()
    if code != 0:
        mistakes.append(f"pickd-demo --page ended with {code} after Ctrl-C")
    known = samples(page)
    named = {"packaging/grafana/pickd.json": set(NAME.findall("\n".join(expressions(dashboard)))),
             "packaging/prometheus/pickd.rules.yml": set(NAME.findall(rules))}
    for path, names in named.items():
        if len(names) < 10:
            mistakes.append(f"{path} names {len(names)} metrics only")
        mistakes += [f"{path} names {name}, which the page has not" for name in sorted(names - known)]
    if samples(open_page) != known:
        mistakes.append(f"the two formats differ in {sorted(samples(open_page) ^ known)}")
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        mistakes.append("two panels of the dashboard have one id")
    if promtool:
        for command, text in ((["check", "metrics"], page), (["check", "rules", rules_path], "")):
            ended = subprocess.run([promtool, *command], input=text, text=True, capture_output=True, check=False)
            if ended.returncode != 0:
                mistakes.append(f"promtool {' '.join(command)}: {ended.stdout}{ended.stderr}")
    for mistake in mistakes:
        print(mistake)
    print(f"metrics: {len(known)} samples' names; " + ", ".join(f"{path} names {len(names)}" for path, names in named.items()))
    if mistakes:
        return 1
    if not promtool:
        print("skipped: promtool is not installed (Debian's package prometheus); all else was checked")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
