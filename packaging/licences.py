#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The licences of the crates that are linked into Weft, from cargo's metadata and their files.

Usage: packaging/licences.py expression        the SPDX expression of all together
       packaging/licences.py texts             each crate with its licence, and every text once
       packaging/licences.py debian            debian/copyright, in its format 1.0

The second word `mount` adds the crates of the bucket mount, and `mount-alone` takes no others.
Linked crates are the normal dependencies of the command and of all libraries on Linux. Code of
build scripts, of tests and of macros that run in the compiler is not linked. Needs cargo, and the
crates that `make build` has fetched; no network.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The line `cargo` of the one list.
BUILT = next(line.split()[1:] for line in (ROOT / "packaging/files.txt").read_text().splitlines()
             if line.startswith("cargo "))
# The Debian package that it is for.
PACKAGE = "weft"
if sys.argv[2:] == ["mount"]:
    BUILT.append("weft-daemon")
elif sys.argv[2:] == ["mount-alone"]:
    BUILT, PACKAGE = ["weft-daemon"], "weft-mount"
TARGET = "x86_64-unknown-linux-gnu"
TEXT_NAMES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)", re.IGNORECASE)
# Names of debian/copyright where they differ from SPDX's.
DEBIAN_NAMES = {"MIT": "Expat"}


def metadata():
    words = ["cargo", "metadata", "--format-version=1", "--locked", "--offline"]
    words += ["--filter-platform", TARGET]
    return json.loads(subprocess.run(words, cwd=ROOT, check=True, capture_output=True).stdout)


def linked_crates():
    """The packages of others that are linked, by name and version."""
    data = metadata()
    packages = {package["id"]: package for package in data["packages"]}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    wanted = [key for key, package in packages.items()
              if package["name"] in BUILT and package["source"] is None]
    if len(wanted) != len(BUILT):
        sys.exit(f"licences.py: the workspace has not all of {', '.join(BUILT)}")
    seen = set()
    while wanted:
        key = wanted.pop()
        if key in seen or is_macro(packages[key]):
            continue
        seen.add(key)
        for dependency in nodes[key]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                wanted.append(dependency["pkg"])
    crates = [packages[key] for key in seen if packages[key]["source"] is not None]
    return sorted(crates, key=lambda crate: (crate["name"], crate["version"]))


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def licence(crate):
    """The SPDX expression; older crates write a slash for OR."""
    if not crate["license"]:
        sys.exit(f"licences.py: crate {crate['name']} names no licence")
    return crate["license"].replace("/", " OR ").replace("  ", " ")


def texts(crate):
    """Names and contents of its licence files."""
    folder = Path(crate["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir())
             if path.is_file() and TEXT_NAMES.match(path.name)]
    return [(path.name, path.read_text(errors="replace").strip()) for path in files]


def copyrights(crate):
    """Its lines of copyright, else its authors."""
    lines = []
    for _, text in texts(crate):
        for line in text.splitlines():
            line = line.strip().lstrip("#/* ")
            if re.match(r"copyright( \(c\)|:| ©)? *[0-9A-Z]", line, re.IGNORECASE) and \
                    not re.match(r"copyright (notice|license|holder|owner|\[|and )", line, re.I):
                lines.append(re.sub(r"^copyright:?\s*(\(c\)|©)?\s*", "", line, flags=re.I))
    return list(dict.fromkeys(lines)) or crate["authors"] or [f"the authors of {crate['name']}"]


def expression(crates):
    """Weft's own, and that of each crate that is another one."""
    own = "Apache-2.0 OR MIT"
    alike = {own, "MIT OR Apache-2.0"}
    others = sorted({licence(crate) for crate in crates} - alike)
    return " AND ".join(f"({one})" for one in [own, *others])


def all_texts(crates):
    out = ["The crates that are linked into Weft, with their licences. Each text is below once.",
           ""]
    names = {}
    out.append("Rust's standard library: MIT OR Apache-2.0")
    for crate in crates:
        out.append(f"{crate['name']} {crate['version']}: {licence(crate)}")
        for name, text in texts(crate):
            names.setdefault(text, []).append(f"{crate['name']} {crate['version']} {name}")
    for text, whose in names.items():
        out += ["", "-" * 80, *whose, "-" * 80, "", text]
    return "\n".join(out)


def debian_licence(spdx):
    """An expression in Debian's words: `or` and `and` small, and its own names."""
    words = [DEBIAN_NAMES.get(word, word) for word in re.findall(r"[^\s()]+", spdx)]
    text = " ".join(words).replace(" OR ", " or ").replace(" AND ", " and ")
    return text.replace(" WITH ", " with ").replace("LLVM-exception", "LLVM exception")


def names_of(spdx):
    """The single licences that an expression names."""
    parts = re.split(r" OR | AND ", re.sub(r"[()]", "", spdx))
    return [part.strip() for part in parts]


def indented(text):
    return "\n".join(" " + line.rstrip() if line.strip() else " ." for line in text.splitlines())


def exception(name, crates):
    """What a licence adds to the one that it names, and nothing of that one."""
    for crate in crates:
        for _, text in texts(crate) if name in names_of(licence(crate)) else []:
            found = re.search(r"^-+ .*\bexceptions?\b.*", text, re.IGNORECASE | re.M | re.S)
            if found:
                return found.group(0)
    sys.exit(f"licences.py: no crate has the text of the exception in {name}")


def text_of(name, crates):
    """The text of one licence: where it is on Debian, else from a crate that has no other."""
    if name == "Apache-2.0":
        return "On Debian systems the text is in /usr/share/common-licenses/Apache-2.0."
    if name == "MIT":
        return (ROOT / "LICENSE-MIT").read_text().split("\n\n", 2)[-1]
    if " WITH " in name:
        return text_of(name.split(" WITH ")[0], crates) + "\n\n" + exception(name, crates)
    for crate in crates:
        if names_of(licence(crate)) == [name] and texts(crate):
            return texts(crate)[0][1]
    for crate in crates:
        if name in names_of(licence(crate)):
            word = name.split("-")[0].lower()
            for own, text in texts(crate):
                if word in own.lower():
                    return text
    return f"The text is in /usr/share/doc/{PACKAGE}/linked-crates.txt.gz ({name})."


def debian(crates):
    own = (ROOT / "LICENSE-MIT").read_text()
    holder = re.search(r"^Copyright (?:\(c\) )?(.*)$", own, re.MULTILINE)
    out = ["Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
           "Upstream-Name: weft",
           "Source: https://github.com/weft-fabric/weft",
           "Comment: Below Weft's own files stand the crates that are linked into it; their texts",
           f" are also in /usr/share/doc/{PACKAGE}/linked-crates.txt.gz.",
           "", "Files: *", f"Copyright: {holder.group(1)}", "License: Apache-2.0 or Expat",
           "", "Files: linked/rust-std/*", "Copyright: The Rust Project contributors",
           "License: Expat or Apache-2.0"]
    for crate in crates:
        lines = copyrights(crate)
        out += ["", f"Files: linked/{crate['name']}-{crate['version']}/*",
                "Copyright: " + "\n           ".join(lines),
                "License: " + debian_licence(licence(crate))]
    single = dict.fromkeys(["Apache-2.0", "MIT"])
    for crate in crates:
        single.update(dict.fromkeys(names_of(licence(crate))))
    for name in sorted(single):
        out += ["", f"License: {debian_licence(name)}", indented(text_of(name, crates))]
    return "\n".join(out)


def main():
    kinds = {"expression": expression, "texts": all_texts, "debian": debian}
    if not sys.argv[1:] or sys.argv[1] not in kinds or sys.argv[2:] not in (
            [], ["mount"], ["mount-alone"]):
        sys.exit("usage: packaging/licences.py expression|texts|debian [mount|mount-alone]")
    print(kinds[sys.argv[1]](linked_crates()))


main()
