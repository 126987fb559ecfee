"""Files whose markers depend on the patch version of Python, or on the kind of machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.cli.options import env_from_flags
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.imports import target_system
from reprobuild.imports.common import wanted_of
from reprobuild.imports.recognize import read_import
from reprobuild.imports.target_system import ReadFor, allows, reading_for
from reprobuild.oci.registry import client
from support.bases import Pusher, files
from support.channel import Channel
from support.index import Index
from support.registry import serve_registry
from support.standalone_python import list_builds
from support.two_platforms import BOTH

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.family", "support.two_platforms", "support.conda_channel"]

OF_PATCHES = "torch==2.4.1\nfilelock==1.0 ; python_full_version < '3.11.5'\n"
OF_MACHINES = "torch==2.4.1\nfilelock==1.0 ; platform_machine == 'aarch64'\n"


@pytest.fixture(autouse=True)
def _amd64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_system, "architecture", lambda: "amd64")


def packages(name: str = "work") -> list[str]:
    return [line for line in Path(f"envs/{name}.toml").read_text().splitlines() if "filelock" in line]


def test_debian_s_python_is_known(family: Index, apt: None, call: Call) -> None:
    Path("requirements.txt").write_text(OF_PATCHES)
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert (said.status, packages()) == (0, ['    "filelock==1.0",']), said.err
    assert "requirements.txt is read for Python 3.11.2, which is of Debian bookworm" in said.err


def test_a_base_image_decides(
    family: Index, apt: None, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CERTIFICATES", (tmp_path / "none",))
    Path("requirements.txt").write_text(OF_PATCHES)
    Path("pyproject.toml").write_text(
        "[project]\nname = 'a'\nrequires-python = '>=3.11.6'\ndependencies = ['torch==2.4.1']\n"
    )
    with serve_registry(tmp_path / "registry") as host:
        Pusher(host, "team/base").image([files()])
        base = ("--base-image", f"{host}/team/base:1", "--cuda", "12.1")
        said = call("lock", "--from", "requirements.txt", *base)
        assert (said.status, packages()) == (0, []), said.err
        assert f"is read for Python 3.11.9, which is that of {host}/team/base:1" in said.err
        # Debian's 3.11.2 would not fit.
        said = call("lock", "--from", "pyproject.toml", *base)
        assert said.status == 0, said.err
        Path("pyproject.toml").write_text(
            "[project]\nname = 'b'\nrequires-python = '>=3.11.10,<3.12'\ndependencies = ['torch==2.4.1']\n"
        )
        said = call("lock", "--from", "pyproject.toml", *base)
        assert (said.status, "which none of 3.11.9, 3.13," in said.err) == (3, True), said.err
    # The lock has it by now.
    assert call("lock", "--check", "--from", "requirements.txt", *base).status == 0


def test_a_standalone_build_decides(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("requirements.txt").write_text(OF_PATCHES.replace("3.11.5", "3.12.5"))
    host = Host(Home(tmp_path / "home"), Console())
    for version, found in (("3.12.4", ("filelock==1.0",)), ("3.12.6", ())):
        list_builds(tmp_path, monkeypatch, version)
        env = env_from_flags({"from": "requirements.txt", "cuda": "12.1", "python": "3.12"}, host)
        assert env is not None
        assert (env.request.packages, env.read_for) == (found, {"linux/amd64": version})


def test_conda_decides(forge: Channel, call: Call) -> None:
    Path("environment.yml").write_text(
        "name: work\nchannels: [forge]\ndependencies:\n  - pytorch\n  - pip:\n"
        "    - filelock==1.0 ; python_full_version < '3.11.5'\n"
    )
    said = call("lock", "--from", "environment.yml", "--cuda", "12.1")
    assert (said.status, packages()) == (0, []), said.err
    assert "environment.yml is read for Python 3.11.9, which is conda's" in said.err


def test_another_python_than_was_read_for_is_an_error(
    family: Index, apt: None, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprobuild.cli.options.image_python", lambda *_, **__: "3.11.1")
    Path("requirements.txt").write_text(OF_PATCHES)
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1")
    assert (said.status, Path("envs").exists()) == (4, False)
    assert "the file was read for Python 3.11.1, and the image gets 3.11.2" in said.err


@pytest.mark.parametrize(
    ("marker", "depends"),
    [
        *(("python_full_version >= '3.11'", False), ("python_full_version < '3.11.4'", True)),
        *(("python_full_version <= '3.11'", True), ("python_full_version <= '3.11.0a6'", False)),
        *(("implementation_version ~= '3.11.4'", True), ("python_full_version in '3.11.2 3.11.4'", True)),
        *(("python_full_version < '3.12.4'", False), ("python_version >= '3.11'", False)),
        ("python_full_version >= '3.11.4' and sys_platform == 'win32'", False),
    ],
)
def test_what_depends_on_the_patch_version(tmp_path: Path, marker: str, depends: bool) -> None:
    (tmp_path / "requirements.txt").write_text(f"a==1 ; {marker}\n")
    system = ReadFor(architecture="amd64")
    with reading_for(system):
        wanted_of(read_import(tmp_path / "requirements.txt"), "3.11")
    assert ("3.11" in system.depends) is depends


@pytest.mark.parametrize(
    ("requires", "known", "unknown", "depends"),
    [
        *((">=3.11.4", False, True, True), ("<3.11.4", True, True, True), ("==3.11.9", False, True, True)),
        *(
            (">=3.10", True, True, False),
            (">=3.12", False, False, False),
            (">3.11,!=3.11.7", True, True, True),
        ),
    ],
)
def test_a_python_of_unknown_patch_version_fits_where_one_does(
    requires: str, *, known: bool, unknown: bool, depends: bool
) -> None:
    for versions, expected in (({"3.11": "3.11.2"}, known), ({}, unknown)):
        system = ReadFor(architecture="amd64", versions=versions)
        with reading_for(system):
            assert allows(requires, "3.11") is expected
        assert ("3.11" in system.depends) is depends


def test_markers_are_read_for_the_platform_that_is_asked_for(arm: Index, call: Call) -> None:
    Path("requirements.txt").write_text(OF_MACHINES)
    for machine, found in (("amd64", []), ("arm64", ['    "filelock==1.0",'])):
        flags = ("--cuda", "cpu" if machine == "arm64" else "12.1", "--platform", f"linux/{machine}")
        said = call("lock", "--from", "requirements.txt", *flags, "--name", machine)
        assert (said.status, packages(machine)) == (0, found), said.err


def test_a_platform_that_there_is_none_of(folder: Path, call: Call) -> None:
    Path("requirements.txt").write_text(OF_MACHINES)
    said = call("lock", "--from", "requirements.txt", "--cuda", "cpu", "--platform", "linux/s390x")
    assert (said.status, "--platform: 'linux/s390x' is not one of" in said.err) == (3, True)


def test_platforms_for_which_a_file_asks_for_different_things(both: Index, call: Call) -> None:
    Path("requirements.txt").write_text(OF_MACHINES)
    said = call("lock", "--from", "requirements.txt", "--cuda", "12.1", *BOTH)
    assert (said.status, Path("envs").exists()) == (3, False)
    assert (
        "the file asks for different things on linux/arm64 and on linux/amd64: packages: ['filelock==1.0'], "
        "there []" in said.err
    )
    Path("requirements.txt").write_text("torch==2.4.1\nfilelock==1.0\n")
    assert call("lock", "--from", "requirements.txt", "--cuda", "12.1", *BOTH).status == 0
