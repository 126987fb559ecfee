from __future__ import annotations

import subprocess
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from reprobuild import assets
from reprobuild.bundle import tool as module
from reprobuild.bundle.own_wheel import own_wheel
from reprobuild.bundle.tool import HOSTS, tool
from reprobuild.fetch.store import Store
from reprobuild.resolve.debian import DebianRequest
from reprobuild.resolve.resolution import Resolution
from support.bundles import host_in
from support.fetching import sha256
from support.locks import LOCK

TOP = Path(__file__).resolve().parents[2]


def test_the_wheel_of_this_installation_has_all_that_a_built_one_has(tmp_path: Path) -> None:
    wheel = own_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert archive.testzip() is None
    package = TOP / "src" / "reprobuild"
    modules = {f"reprobuild/{path.relative_to(package)}" for path in package.rglob("*.py")}
    assert modules <= names
    assert {f"reprobuild/templates/{path.name}" for path in (TOP / "templates").iterdir()} <= names
    info = {name.partition("/")[2] for name in names if ".dist-info/" in name}
    assert {"METADATA", "WHEEL", "RECORD", "entry_points.txt"} <= info
    assert not {name for name in names if "__pycache__" in name or "/pylock." in name}
    again = tmp_path / "again"
    again.mkdir()
    assert own_wheel(again).read_bytes() == wheel.read_bytes()


def test_the_requests_that_ship_are_those_of_the_package() -> None:
    settings = tomllib.loads((TOP / "pyproject.toml").read_text())
    included = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert [path for path in included if path.startswith("envs/")] == [
        f"envs/{name}.toml" for name in assets.SHIPPED
    ]


def test_both_releases_of_debian_can_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = host_in(tmp_path)
    libc = replace(
        next(p for p in LOCK.debian if p.name == "libc6"), sha256=sha256(b"libc"), size=len(b"libc")
    )
    wheel = replace(LOCK.python[0], wheel=replace(LOCK.python[0].wheel, sha256=sha256(b"w"), size=1))
    for data in (b"libc", b"w"):
        Store(host.home).add_document(data)
    asked: list[DebianRequest] = []
    resolutions: list[tuple[list[str], Resolution]] = []

    def resolve_debian(wanted: DebianRequest, _: object) -> tuple[object, ...]:
        asked.append(wanted)
        return (libc,)

    def resolve_python(wanted: list[str], resolution: Resolution) -> tuple[object, ...]:
        resolutions.append((wanted, resolution))
        return (wheel,)

    monkeypatch.setattr(module, "resolve_debian_unless_known", resolve_debian)
    monkeypatch.setattr(module, "resolve_python", resolve_python)
    monkeypatch.setattr(module, "archive_entry", lambda package, **_: f"Package: {package.name}\n")
    monkeypatch.setattr("platform.python_version_tuple", lambda: ("3", "12", "1"))
    found = tool(host)
    assert {(each.suite, each.python) for each in asked} == set(HOSTS.items())
    assert {"crun", "mmdebstrap", "mount"} <= set(asked[0].apt)
    assert {each.request.python for _, each in resolutions} == {"3.11", "3.13", "3.12"}
    wanted, resolution = resolutions[0]
    assert any(text.startswith("zstandard==") for text in wanted)
    assert not any("pytest" in text for text in wanted)
    assert resolution.existing is not None
    assert resolution.kept("zstandard")
    assert found.pythons == ("3.11", "3.12", "3.13")
    paths = {member.path for member in found.members}
    assert paths >= {"install.sh", "debian/bookworm/Packages", f"debian/trixie/{libc.filename}"}
    assert found.texts["debian/trixie/Packages"] == b"Package: libc6\n"
    assert b'" 3.11 3.12 3.13 "' in found.texts["install.sh"]


def test_the_script_says_how_it_is_called(tmp_path: Path) -> None:
    script = tmp_path / "install.sh"
    script.write_text(assets.template("bundle-install.sh"))
    said = subprocess.run(["sh", script], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (2, "usage: install.sh BUNDLE FOLDER\n")
    said = subprocess.run(
        ["sh", script, tmp_path / "no", tmp_path / "f"], capture_output=True, text=True, check=False
    )
    assert said.returncode
    assert "no: Cannot open: No such file" in said.stderr
    (tmp_path / "f" / "old").touch()
    said = subprocess.run(
        ["sh", script, tmp_path / "no", tmp_path / "f"], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (2, f"{tmp_path}/f is not empty: name a new folder\n")
