#!/usr/bin/env python3
"""Files under packaging/ agree with each other and with what they package.

Usage: packaging_test.py SOURCE_DIR BINARY_DIR
Versions, symbols files, the installed files of both kinds of packages, the Containerfile, and the manifests, whose
memory limits must fit the configuration that they mount. Exit 77: skipped, there is no PyYAML.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

DAEMON_MIB = 128  # beside state and channels, as docs/containers.md says


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as text:
        return text.read()


def versions(source):
    """One version everywhere."""
    wanted = re.search(r"^project\(pickd VERSION ([\d.]+)", read(source, "CMakeLists.txt"), re.M).group(1)
    header = ".".join(re.findall(r"#define PICKD_VERSION_\w+ (\d+)", read(source, "include/pickd/pickd.h")))
    if header != wanted:
        yield f"pickd.h says {header}, CMakeLists.txt {wanted}"
    for path in glob.glob(os.path.join(source, "packaging/kubernetes/*.yaml")):
        for version in re.findall(r"image: pickd:(\S+)", read(path)):
            if version != wanted:
                yield f"{path}: image pickd:{version}; the version is {wanted}"
    minor = read(source, "abi/segment.hpp")
    layout = "{}.{}".format(*(re.search(rf"kLayout{part} = (\d+)", minor).group(1) for part in ("Major", "Minor")))
    if f"Layout version **{layout}**" not in read(source, "abi/LAYOUT.md"):
        yield f"abi/LAYOUT.md does not begin with layout version {layout}"


def symbols(source):
    """Debian's symbols files list what the version scripts export."""
    for library, package in (("libpickd", "libpickd0"), ("libpickd-body", "libpickd-body0")):
        text = read(source, f"abi/{library}.map")
        exported = set()
        for node, body in re.findall(r"^(\w+) \{(.*?)^\}", text, re.M | re.S):
            exported |= {f"{node}@{node}"} | {f"{name}@{node}" for name in re.findall(r"^\s*(pickd_\w+);", body, re.M)}
        listed = set(re.findall(r"^ (\S+) [\d.]+$", read(source, f"packaging/debian/{package}.symbols"), re.M))
        for name in sorted(exported ^ listed):
            where = "is missing in" if name in exported else "is exported no more and stands in"
            yield f"{name} {where} packaging/debian/{package}.symbols"


def parts(source):
    """Both kinds of packages have the same programs, units and libraries."""
    spec = read(source, "packaging/rpm/pickd.spec")
    debian = "".join(read(path) for path in sorted(glob.glob(os.path.join(source, "packaging/debian/*.install"))))
    for name in re.findall(r"install\(TARGETS ([\w\- ]+?) RUNTIME", read(source, "packaging/CMakeLists.txt")):
        for program in name.split():
            if not re.search(rf"^%{{_s?bindir}}/{program}$", spec, re.M):
                yield f"packaging/rpm/pickd.spec does not have {program}"
    for name in ("libpickd.so.*", "libpickd-body.so.*"):
        if name not in spec or name not in debian:
            yield f"{name} is not in both kinds of packages"


def containerfile(source):
    """The image starts as the manifests take it: user, program, arguments."""
    lines = re.sub(r"\\\n", " ", read(source, "packaging/container/Containerfile")).split("\n")
    said = {}
    for line in lines:
        if line and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            if word not in ("FROM", "ADD", "USER", "VOLUME", "ENV", "ENTRYPOINT", "CMD", "STOPSIGNAL", "LABEL"):
                yield f"Containerfile: {word} needs a running container, or is none of its words"
            said[word] = rest
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", said.get("USER", "")):
        yield "Containerfile: USER must be numbers other than root's"
    for word in ("ENTRYPOINT", "CMD"):
        if not re.fullmatch(r'\["[^"]+"(, "[^"]+")*\]', said.get(word, "")):
            yield f"Containerfile: {word} must be a JSON list, or a shell is needed that is not there"
    user = said["USER"].split(":")[0]
    for path in glob.glob(os.path.join(source, "packaging/kubernetes/*.yaml")):
        for other in re.findall(r"runAsUser: (\d+)|fsGroup: (\d+)|chown\", \"(\d+):", read(path)):
            if "".join(other) not in (user, "0"):
                yield f"{path}: user {''.join(other)}; the image's is {user}"


def mebibytes(quantity):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()
    return int(number) * (1024 if unit == "Gi" else 1)


def manifests(source, yaml):
    """They parse; every container has limits, no rights, and the memory that its configuration takes."""
    folder = os.path.join(source, "packaging/kubernetes")
    config = yaml.safe_load(next(iter(yaml.safe_load_all(read(folder, "config.yaml"))))["data"]["pickd.yaml"])
    needed = config["state"]["size_mib"] + config["listen"]["channels_mib_max"] + DAEMON_MIB
    for name in ("daemonset.yaml", "sidecar.yaml"):
        pod = next(yaml.safe_load_all(read(folder, name)))["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod.get("initContainers", []) + pod["containers"]:
            for mount in container["volumeMounts"]:
                if mount["name"] not in volumes:
                    yield f"{name}: {container['name']} mounts {mount['name']}, which is no volume"
            if not container["image"].startswith("pickd:"):
                continue
            security = container["securityContext"]
            if security["capabilities"]["drop"] != ["ALL"] or not security["readOnlyRootFilesystem"]:
                yield f"{name}: {container['name']} has rights that it does not need"
        pickd = next(one for one in pod.get("initContainers", []) + pod["containers"] if one["name"] == "pickd")
        limit = mebibytes(pickd["resources"]["limits"]["memory"])
        if limit < needed:
            yield f"{name}: a memory limit of {limit} MiB; state, channels and daemon take {needed}"
        for volume in pod["volumes"]:
            size = mebibytes(volume["emptyDir"]["sizeLimit"]) if "emptyDir" in volume else limit
            if size <= config["state"]["size_mib"]:
                yield f"{name}: the volume {volume['name']} of {size} MiB does not hold the state"


def configuration(source, binary, yaml):
    """The daemon takes the configuration of the manifests."""
    program = os.path.join(binary, "bin/pickd")
    if not os.path.exists(program):
        return
    text = yaml.safe_load(read(source, "packaging/kubernetes/config.yaml"))["data"]["pickd.yaml"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([program, "--check-config", file.name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"packaging/kubernetes/config.yaml: {done.stdout}{done.stderr}"


def main():
    source, binary = sys.argv[1:3]
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("skipped: there is no PyYAML for this Python")
        return 77
    mistakes = [*versions(source), *symbols(source), *parts(source), *containerfile(source), *manifests(source, yaml),
                *configuration(source, binary, yaml)]
    print("\n".join(mistakes) if mistakes else "versions, symbols, files, image and manifests agree")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
