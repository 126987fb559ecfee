"""Licenses, dependencies and source packages, as the files of a lock's packages have them."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.bill import Facts, cyclonedx
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import DebianPackage
from reprobuild.resolve.package_facts import facts_of
from support.locks import LOCK
from support.resolving import debian
from support.wheels import put, wheel_bytes


def wheel(name: str, headers: str) -> bytes:
    text = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{headers}"
    return wheel_bytes(name, "1.0", {}, info={"METADATA": text})


def python_facts(home: Home, headers: Mapping[str, str], packages: tuple[str, ...] = ()) -> dict[str, Facts]:
    """Return the facts of wheels, by name, each with more lines in its METADATA."""
    wheels = [put(home, name, wheel(name, text)) for name, text in headers.items()]
    lock = replace(LOCK, python=wheels, debian=(), request=replace(LOCK.request, packages=packages))
    found = facts_of(lock, home)
    return {package.name: found[package.wheel.sha256] for package in wheels}


@pytest.mark.parametrize(
    ("headers", "expression", "names"),
    [
        ("License-Expression: mit or apache-2.0\n", "MIT OR Apache-2.0", ()),
        ("License: BSD-3-Clause\n", "BSD-3-Clause", ()),
        ("License: BSD, see LICENSE\n", "", ("BSD, see LICENSE",)),
        ("License: Libre, d'après\n", "", ("Libre, d'après",)),
        (
            "License: Own\nClassifier: License :: OSI Approved :: MIT License\n",
            "",
            ("MIT License",),
        ),
        (f"License: {'x' * 101}\n", "", ()),
        ("License: Copyright (c) 2020\n        All rights reserved.\n", "", ()),
        ("", "", ()),
    ],
)
def test_the_license_of_a_wheel(
    headers: str, expression: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    found = python_facts(Home(tmp_path), {"a": headers})["a"]
    assert (found.expression, tuple(found.licenses)) == (expression, names)


def test_a_dependency_counts_where_its_marker_and_extra_hold(tmp_path: Path) -> None:
    headers = {
        "a": "Requires-Dist: B[fast]\nRequires-Dist: c; os_name == 'nt'\nRequires-Dist: not valid !\n",
        "b": "Requires-Dist: c; extra == 'fast'\nRequires-Dist: d; extra == 'docs'\n",
        "c": "Requires-Dist: e; extra == 'more'\nRequires-Dist: missing\n",
        "d": "",
        "e": "",
    }
    home = Home(tmp_path)
    names = {hashlib.sha256(wheel(name, text)).hexdigest(): name for name, text in headers.items()}
    found = python_facts(home, headers, packages=("c[more]",))
    requires = {name: [names[sha256] for sha256 in facts.requires] for name, facts in found.items()}
    assert requires == {"a": ["b"], "b": ["c"], "c": ["e"], "d": [], "e": []}


COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Files: *
License: GPL-2+

License: GPL-2+
 On Debian, see /usr/share/common-licenses/GPL-2.
License: Expat
"""
OLD = "It is free software. See /usr/share/common-licenses/LGPL-2.1, and /usr/share/common-licenses/GPL."


def deb(home: Home, name: str, *fields: str, document: str = "", link: str = "") -> DebianPackage:
    """Lay a package with a file ``copyright``, or a link in place of its folder, into the store."""
    root = home.root / "debs" / name
    (root / "DEBIAN").mkdir(parents=True)
    lines = [
        f"Package: {name}",
        "Version: 1",
        "Architecture: amd64",
        "Maintainer: X <x@example.org>",
        *fields,
    ]
    (root / "DEBIAN/control").write_text("\n".join([*lines, "Description: x", ""]))
    folder = root / "usr/share/doc" / name
    if link:
        folder.parent.mkdir(parents=True)
        folder.symlink_to(link)
    else:
        folder.mkdir(parents=True)
        (folder / "copyright").write_text(document)
    file = home.root / f"{name}.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(file)]
    subprocess.run(command, check=True, capture_output=True)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    Store(home).add(sha256, file)
    return replace(debian(name, "1"), sha256=sha256)


def test_what_debian_packages_say(tmp_path: Path) -> None:
    home = Home(tmp_path)
    tool = deb(home, "tool", "Source: toolbox (2)", "Depends: gone | libx (>= 1), mta", document=COPYRIGHT)
    libx = deb(home, "libx", "Pre-Depends: gone", "Source: x", link="tool")
    mail = deb(home, "mail", "Provides: mta (= 1), sendmail", document=OLD)
    lock: Lock = replace(LOCK, python=(), debian=[tool, libx, mail])
    found = facts_of(lock, home)
    assert found == {
        tool.sha256: Facts(
            licenses=["Expat", "GPL-2+"], upstream="toolbox@2", requires=[libx.sha256, mail.sha256]
        ),
        libx.sha256: Facts(licenses=["Expat", "GPL-2+"], upstream="x", requires=[]),
        mail.sha256: Facts(licenses=["GPL", "LGPL-2.1"], upstream="", requires=[]),
    }
    bill = json.loads(cyclonedx(lock, found))
    (component,) = (c for c in bill["components"] if c["name"] == "tool")
    assert component["purl"].endswith("&upstream=toolbox%402")
    assert component["externalReferences"][0]["url"] == f"debian/{tool.path}"
    edges = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    assert [ref.partition("@")[0] for ref in edges[component["bom-ref"]]] == [
        "pkg:deb/debian/libx",
        "pkg:deb/debian/mail",
    ]


def test_a_file_that_is_no_package_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)
    package = deb(home, "tool", document=OLD)
    path = Store(home).path(package.sha256)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(BuildError, match=r"tool_1_amd64\.deb: not a Debian package"):
        facts_of(replace(LOCK, python=(), debian=[package]), home)


def test_a_damaged_file_is_named_and_removed_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where layers came from a registry, nothing else looks at the wheels that are there."""
    home = Home(tmp_path)
    wheels = [put(home, name, wheel(name, "License: MIT\n")) for name in ("a", "b")]
    hurt = Store(home).path(wheels[0].wheel.sha256)
    data = bytearray(hurt.read_bytes())
    data[len(data) // 2] ^= 1
    hurt.chmod(0o644)
    hurt.write_bytes(data)
    found = facts_of(replace(LOCK, python=wheels, debian=()), home)
    assert found.keys() == {wheels[1].wheel.sha256}
    assert str(hurt) in capsys.readouterr().err
    assert not hurt.exists()
