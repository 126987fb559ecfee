"""Packages without a wheel in a resolve: which release is built, what is locked of it, what is withdrawn."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.errors import BuildError, ResolveError
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import try_claim
from reprobuild.host.host import Host
from reprobuild.net.session import session
from reprobuild.resolve.constraint_loop import fitting
from reprobuild.resolve.sdist_builds import SourcePackages
from reprobuild.sources import sandboxed, workshop
from reprobuild.sources.sandboxed import Recipe
from support.building_resolve import TARGET, Resolve
from support.fixtures import fixtures_of
from support.index import File, Index
from support.index import wheel as index_wheel
from support.python_root import PYTHON
from support.resolving import request, resolution
from support.sdists import PYPROJECT, sdist, serve
from support.wheels import wheel_bytes

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.built_sources"))


def test_the_newest_release_is_built_and_what_it_requires_comes_too(resolve: Resolve, index: Index) -> None:
    for version in ("1.0", "2.0"):
        serve(index, "tool", version, sdist("tool", version, requires=("other>=2",)))
    index.add("other", "1.0")
    index.add("other", "2.0")
    assert resolve("tool") == {"tool": "2.0", "other": "2.0"}
    (tool,) = (p for p in resolve.python if p.name == "tool")
    assert tool.source is not None
    assert (tool.wheel.filename, tool.wheel.url) == ("tool-2.0-py3-none-any.whl", "")
    assert tool.source.url == f"{index.root}/files/tool-2.0.tar.gz"
    assert tool.source.requires == ("pip==26.0",)
    assert [p.pin for p in resolve.build.python] == ["pip==26.0"]
    assert Store(resolve.host.home).has(tool.wheel.sha256, tool.wheel.size)


@pytest.mark.slow
def test_what_another_package_requires_is_built_too(resolve: Resolve, index: Index) -> None:
    index.add("hydra", "1.0")
    index.add("hydra", "1.3", requires=["antlr==4.9.*"])
    for version in ("4.9.3", "4.13"):
        serve(index, "antlr", version, sdist("antlr", version))
    assert (resolve("hydra"), resolve.notes) == ({"hydra": "1.3", "antlr": "4.9.3"}, [])


@pytest.mark.slow
def test_one_that_does_not_fit_with_what_it_requires_gives_way_to_an_older(
    resolve: Resolve, index: Index
) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    serve(index, "tool", "2.0", sdist("tool", "2.0", requires=("other==2",)))
    index.add("other", "1")
    index.add("other", "2")
    assert resolve("tool", "other==1") == {"tool": "1.0", "other": "1"}


FAILS = "raise RuntimeError('built')"


def pkg_info(name: str, version: str, *lines: str) -> str:
    return "\n".join(["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}", *lines, ""])


@pytest.mark.slow
def test_a_release_that_says_what_it_requires_is_not_built_to_learn_it(
    resolve: Resolve, index: Index
) -> None:
    """Of the releases that uv steps back over, none is built: their backends fail."""
    index.add("other", "1")
    index.add("other", "2")
    static = {"PKG-INFO": pkg_info("tool", "3.0", "Requires-Dist: other==2")}
    serve(index, "tool", "3.0", sdist("tool", "3.0", static, more=FAILS))
    project = '[project]\nname = "tool"\nversion = "2.0"\ndependencies = ["other>1"]\n'
    serve(index, "tool", "2.0", sdist("tool", "2.0", {"pyproject.toml": PYPROJECT + project}, more=FAILS))
    static = {"PKG-INFO": pkg_info("tool", "1.0", "Requires-Dist: other>=1")}
    serve(index, "tool", "1.0", sdist("tool", "1.0", static, requires=("other>=1",)))
    assert resolve("tool", "other==1") == {"tool": "1.0", "other": "1"}


@pytest.mark.slow
def test_a_backend_is_asked_for_the_metadata_of_what_is_stepped_back_over(
    resolve: Resolve, index: Index
) -> None:
    index.add("other", "1")
    index.add("other", "2")
    serve(index, "tool", "3.0", sdist("tool", "3.0", requires=("other==2",)))
    prepares = """
def prepare_metadata_for_build_wheel(folder, settings=None):
    os.mkdir(folder + "/tool-2.0.dist-info")
    with open(folder + "/tool-2.0.dist-info/METADATA", "w") as file:
        file.write("Metadata-Version: 2.1\\nName: tool\\nVersion: 2.0\\nRequires-Dist: other>1\\n")
    return "tool-2.0.dist-info"
def files():
    raise RuntimeError("built")
"""
    serve(index, "tool", "2.0", sdist("tool", "2.0", more=prepares))
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    assert resolve("tool", "other==1") == {"tool": "1.0", "other": "1"}


@pytest.mark.slow
def test_what_the_built_wheel_requires_counts_whatever_the_archive_said(
    resolve: Resolve, index: Index
) -> None:
    index.add("other", "1")
    body = sdist("tool", "1.0", {"PKG-INFO": pkg_info("tool", "1.0")}, requires=("other",))
    serve(index, "tool", "1.0", body)
    assert resolve("tool") == {"tool": "1.0", "other": "1"}


@pytest.mark.slow
def test_what_cannot_be_built_gives_way_to_an_older_wheel_and_that_is_told(
    resolve: Resolve, index: Index
) -> None:
    index.add("tool", "1.0")
    serve(index, "tool", "2.0", sdist("tool", "2.0", more="import numpy"))
    assert resolve("tool") == {"tool": "1.0"}
    assert resolve.notes[0] == "tool 1.0 is taken: 2.0, the newest, has no wheel"
    assert "tool 2.0: it could not be built: ModuleNotFoundError: No module named 'numpy'" in resolve.notes[1]
    with pytest.raises(BuildError, match=r"tool 2\.0: it could not be built") as caught:
        resolve("tool>=2")
    assert '[build.tool] requires = ["numpy"]' in caught.value.hint


def test_the_same_again_builds_nothing(
    resolve: Resolve, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    resolve("tool")
    lock = resolve.lock(request(packages=["tool"], python=PYTHON), resolve.python)
    serve(index, "tool", "2.0", sdist("tool", "2.0"))
    monkeypatch.setattr(workshop.Workshop, "_made_root", None)
    assert resolve("tool", existing=lock) == {"tool": "1.0"}
    assert resolve.python == lock.python
    assert resolve.build == lock.build


class Told(Console):
    """A console that keeps what it is told, and says when it is told to wait."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.waits: list[str] = []
        self.is_waiting = threading.Event()

    def step(self, text: str) -> None:
        if text.startswith("waiting"):
            self.waits.append(text)
            self.is_waiting.set()


def _beside(
    resolve: Resolve, other: Resolve, package: str, during: Callable[[threading.Thread], None]
) -> int:
    """Lock tool, and while its first build goes on another package in the same home; return how many builds.

    ``during`` gets the other lock's thread, and tool's build ends only after it.
    """
    real, count = sandboxed.build, 0
    thread = threading.Thread(target=lambda: other(package))

    def build(recipe: Recipe, *given: Any, **more: Any) -> Path:
        nonlocal count
        count += 1
        if count == 1:
            thread.start()
            during(thread)
        return real(recipe, *given, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandboxed, "build", build)
        assert resolve("tool") == {"tool": "1.0"}
        thread.join(120)
    assert other.python
    return count


def test_two_locks_in_one_home_build_different_packages_at_once(resolve: Resolve, index: Index) -> None:
    for name in ("tool", "other"):
        serve(index, name, "1.0", sdist(name, "1.0"))
    other, told = Resolve(resolve.host.home), Told()
    other.host = Host(resolve.host.home, told)

    def to_its_end(thread: threading.Thread) -> None:
        while thread.is_alive() and not told.is_waiting.is_set():
            thread.join(0.05)

    assert _beside(resolve, other, "other", to_its_end) == 4
    assert told.waits == []
    # What removes files waits for both.
    with resolve.host.home.lock("sources", told, shared=True):
        assert try_claim(resolve.host.home.root / "locks/sources") is None


def test_two_locks_in_one_home_take_turns_with_the_same_package(resolve: Resolve, index: Index) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    other, told = Resolve(resolve.host.home), Told()
    other.host = Host(resolve.host.home, told)

    def until_it_waits(_: threading.Thread) -> None:
        assert told.is_waiting.wait(120)

    assert _beside(resolve, other, "tool", until_it_waits) in (2, 3)
    assert set(told.waits) == {
        f"waiting for another reprobuild, which builds tool 1.0 in {resolve.host.home.root}"
    }
    assert other.python == resolve.python


@pytest.mark.slow
def test_two_builds_that_differ_are_refused(resolve: Resolve, index: Index) -> None:
    stamp = "def files():\n    return {'tool/when.py': str(time.time_ns())}"
    serve(index, "tool", "1.0", sdist("tool", "1.0", more=stamp))
    with pytest.raises(BuildError, match=r"tool 1\.0: two builds of it gave .*: tool/when\.py differs"):
        resolve("tool")
    assert not Store(resolve.host.home).sizes().keys() - {file.sha256 for file in index.files}
    assert not list(resolve.host.home.folder("built").iterdir())
    serve(index, "tool", "1.1", sdist("tool", "1.1"))
    assert resolve("tool") == {"tool": "1.1"}


@pytest.mark.slow
def test_another_name_in_the_metadata_is_refused(resolve: Resolve, index: Index) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0", more="NAME = 'other'"))
    with pytest.raises(BuildError, match=r"tool 1\.0: the metadata of the wheel .* are those of other 1\.0"):
        resolve("tool")


def test_another_name_in_the_archive_is_refused(resolve: Resolve, index: Index) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0", {"PKG-INFO": pkg_info("tool", "1.1")}))
    with pytest.raises(
        BuildError, match=r"tool 1\.0: the PKG-INFO in its source archive is that of tool 1\.1"
    ):
        resolve("tool")


WITHOUT = """
class Without(zipfile.ZipFile):
    def writestr(self, path, content):
        if not path.endswith("METADATA"):
            super().writestr(path, content)
zipfile.ZipFile = Without
"""


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("NAME += '\\nVersion: of mine'", "are those of tool"),
        ("NAME = 'x\\nName: y'", r"are those of 1\.0"),
        (WITHOUT, "its build made a wheel without METADATA"),
    ],
)
@pytest.mark.slow
def test_metadata_without_name_and_version_are_refused(
    resolve: Resolve, index: Index, more: str, reason: str
) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0", more=more))
    with pytest.raises(BuildError, match=rf"tool 1\.0: .*{reason}$"):
        resolve("tool")


def test_a_requirement_that_is_a_url_is_refused(resolve: Resolve, index: Index) -> None:
    body = sdist(
        "tool", "1.0", {"pyproject.toml": '[build-system]\nrequires = ["a @ https://x.example/a.whl"]'}
    )
    serve(index, "tool", "1.0", body)
    with pytest.raises(BuildError, match=r"tool: its build requirements cannot be resolved: .* names a URL"):
        resolve("tool")


def test_only_wheels(resolve: Resolve, index: Index) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    asked = request(packages=["tool"], python=PYTHON)
    with (
        session(retries=0) as http,
        pytest.raises(ResolveError, match=r"no wheel for this Python .* of tool"),
    ):
        fitting(["tool"], resolution(http, asked))


@pytest.mark.parametrize("by_address", [False, True])
def test_nothing_is_built_for_another_c_library_than_the_image_s(
    resolve: Resolve, index: Index, by_address: bool
) -> None:
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    wanted = f"tool @ {index.root}/files/tool-1.0.tar.gz" if by_address else "tool"
    asked = request(packages=[wanted], python=PYTHON)
    with session(retries=0) as http:
        about = resolution(http, asked, target=TARGET, host=resolve.host)
        never = SourcePackages(about, lambda: pytest.fail("built"), lambda: False)
        with closing(never) as sources:
            assert fitting([wanted], about, sources=sources) is None


def test_a_wheel_built_elsewhere_is_taken_from_find_links(
    resolve: Resolve, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of flash-attn are named: with what they were built for as a local version."""
    python = f"cp{PYTHON.replace('.', '')}"
    name = f"flash_attn-2.8.3+cu12torch2.4cxx11abifalse-{python}-{python}-linux_x86_64.whl"
    body = index_wheel("flash_attn", "2.8.3+cu12torch2.4cxx11abifalse")
    (tmp_path / name).write_bytes(body)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    serve(index, "flash-attn", "2.8.3", sdist("flash-attn", "2.8.3", more="1/0"))
    for asked in ("flash-attn", "flash-attn==2.8.3"):
        assert resolve(asked) == {"flash-attn": "2.8.3+cu12torch2.4cxx11abifalse"}
        (flash,) = resolve.python
        assert (flash.source, flash.wheel.filename) == (None, name)
        assert flash.wheel.sha256 == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize(
    ("keys", "architecture", "why", "cure"),
    [
        ({"only-wheels": True}, "amd64", "the request takes wheels alone", "take only-wheels"),
        (
            {"conda": {"channels": ["x"], "packages": ["y"]}},
            "amd64",
            "nothing is built beside conda",
            "take conda out",
        ),
        ({}, "arm64", "nothing is built for linux/arm64 on this machine", "lock on a machine of that kind"),
    ],
)
def test_where_only_wheels_count_the_cure_is_named(
    index: Index,
    monkeypatch: pytest.MonkeyPatch,
    keys: dict[str, Any],
    architecture: str,
    why: str,
    cure: str,
) -> None:
    """Of an address, and of a package of an index that has no wheel."""
    monkeypatch.setattr("reprobuild.resolve.constraint_loop.architecture", lambda: "amd64")
    serve(index, "tool", "1.0", sdist("tool", "1.0"))
    target = replace(TARGET, architecture=architecture)
    for asked in ("tool", f"tool @ {index.root}/files/tool-1.0.tar.gz"):
        wanted = request(packages=[asked], python=PYTHON, **keys)
        with session(retries=0) as http, pytest.raises(ResolveError) as caught:
            fitting([asked], resolution(http, wanted, target=target))
        assert why in caught.value.message
        assert cure in caught.value.hint


@pytest.mark.slow
def test_a_failed_build_names_the_python_that_has_a_wheel(resolve: Resolve, index: Index) -> None:
    index.add("tool", "1.0", tag="cp39-cp39-manylinux_2_17_x86_64")
    serve(index, "tool", "1.0", sdist("tool", "1.0", more=FAILS))
    with pytest.raises(BuildError, match=r"tool 1\.0: it could not be built") as caught:
        resolve("tool==1.0")
    assert caught.value.hint.startswith("tool==1.0 has wheels for Python 3.9: give --python 3.9 (python in")


OF_ITS_TIME = """
if any("pip-27" in name for name in os.listdir("/mnt/wheels")):
    raise RuntimeError("this is newer than I am")
"""


ASKS = "def get_requires_for_build_wheel(settings=None):\n    return ['pip']\n"


@pytest.mark.slow
@pytest.mark.parametrize("asks", ["", ASKS])
def test_what_newer_build_requirements_break_is_built_with_those_of_its_time(
    resolve: Resolve, index: Index, asks: str
) -> None:
    """Also where its backend asks for what it has already."""
    newest = wheel_bytes("pip", "27.0", {"pip/__init__.py": ""})
    file = File(project="pip", name="pip-27.0-py3-none-any.whl", body=newest, metadata="unannounced")
    file.uploaded = "2027-01-01T00:00:00Z"
    index.files.append(file)
    serve(index, "tool", "1.0", sdist("tool", "1.0", more=OF_ITS_TIME + asks))
    assert resolve("tool") == {"tool": "1.0"}
    assert [package.pin for package in resolve.build.python] == ["pip==26.0"]
