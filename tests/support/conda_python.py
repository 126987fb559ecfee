"""This machine's own Python and installed packages, made into conda packages that run."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.channel import PLACEHOLDER, Channel, Content

_FACTS = """
import json, sys, sysconfig
print(json.dumps({"version": sys.version.split()[0], "minor": "%d.%d" % sys.version_info[:2],
 "stdlib": sysconfig.get_path("stdlib"), "program": sys._base_executable}))
"""
_LEFT_OUT = re.compile(
    r"(.*/)?(__pycache__|site-packages|dist-packages|test|tests|idlelib|ensurepip|config-.*)(/.*)?"
    r"|sitecustomize\.py|EXTERNALLY-MANAGED"
)
"""The last two are Debian's own, in its Python alone."""


def add_python(channel: Channel, interpreter: str) -> str:
    """Add the Python below an interpreter as the package ``python``; return its minor version."""
    facts = json.loads(subprocess.run([interpreter, "-c", _FACTS], check=True, capture_output=True).stdout)
    minor, stdlib = str(facts["minor"]), Path(facts["stdlib"])
    program = Path(facts["program"]).resolve()
    files: dict[str, Content] = {f"bin/python{minor}": program, "bin/python3": f"python{minor}"}
    files |= {"bin/python": f"python{minor}"}
    for path in sorted(stdlib.rglob("*")):
        name = path.relative_to(stdlib).as_posix()
        if path.is_file() and not _LEFT_OUT.fullmatch(name):
            files[f"lib/python{minor}/{name}"] = path
    # Debian's own installs into folders of its own.
    sysconfig = (stdlib / "sysconfig.py").read_bytes()
    files[f"lib/python{minor}/sysconfig.py"] = sysconfig.replace(b"'posix_local'\n", b"'posix_prefix'\n")
    # It also looks for packages there; its site.py is frozen into the program.
    files[f"lib/python{minor}/dist-packages"] = "site-packages"
    prefixed = [f"lib/python{minor}/prefix.txt"]
    files[prefixed[0]] = PLACEHOLDER.encode()
    for library in _libraries(program):
        files[f"lib/{library.name}"] = library
        # As conda has it: the program looks beside itself. The shorter path fits where the longer was.
        old, new = str(library.parent).encode() + b"\0", b"$ORIGIN/../lib\0"
        files[f"bin/python{minor}"] = program.read_bytes().replace(old, new.ljust(len(old), b"\0"))
    channel.add("python", facts["version"], "0_cpython", files=files, prefixed=prefixed)
    return minor


def add_installed(
    channel: Channel, site: Path, names: Sequence[str], minor: str, *, noarch: bool = False
) -> dict[str, str]:
    """Add installed distributions, by their names as pip has them; return the versions."""
    versions = {}
    for name in names:
        module = re.sub(r"[-.]", "_", name)
        (info,) = [p for p in site.glob("*.dist-info") if p.name.lower().startswith(f"{module}-".lower())]
        version = info.name.removesuffix(".dist-info").rpartition("-")[2]
        files: dict[str, Content] = {}
        for path in _recorded(info):
            if not path.startswith("..") and "__pycache__" not in path:
                files[f"{'' if noarch else f'lib/python{minor}/'}site-packages/{path}"] = site / path
        conda = {"torch": "pytorch"}.get(name, name)
        versions[conda] = version.partition("+")[0]
        build = f"cpu_py{minor.replace('.', '')}_0" if name == "torch" else "0"
        depends = [f"python {minor}.*"]
        channel.add(conda, versions[conda], build, files=files, depends=depends, noarch=noarch)
    return versions


def _recorded(info: Path) -> Iterator[str]:
    with (info / "RECORD").open(newline="") as file:
        yield from (row[0] for row in csv.reader(file) if row and (info.parent / row[0]).is_file())


def _libraries(program: Path) -> list[Path]:
    listing = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [Path(p) for p in re.findall(r"=> (/\S+/libpython\S+) ", listing)]
