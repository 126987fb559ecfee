"""A package that is built from source, in a lock: read, written, told."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import tomli_w

from reprobuild.errors import LockError, RenderError, ResolveError
from reprobuild.lock.bill import cyclonedx
from reprobuild.lock.exports import explicit, requirements
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import BuildFiles, PythonPackage, SourceArchive, Wheel
from reprobuild.lock.platforms import dump_locks, parse_locks
from reprobuild.lock.reader import parse_lock
from reprobuild.render.dockerfile import DebianRoot, render_self_contained
from support.addressed import files, source_of
from support.building_resolve import Resolve
from support.fixtures import fixtures_of
from support.git_server import GitServer, repository
from support.index import Index
from support.locks import LOCK, SMALL, SMALL_TEXT
from support.resolving import debian

pytest_plugins = ["support.family"]
globals().update(fixtures_of("support.addressed"))

SETUPTOOLS = PythonPackage(
    name="setuptools",
    version="80.9.0",
    wheel=Wheel(
        filename="setuptools-80.9.0-py3-none-any.whl",
        url="https://index.example/setuptools-80.9.0-py3-none-any.whl",
        sha256="3" * 64,
        size=1200000,
    ),
)
DOCOPT = PythonPackage(
    name="docopt",
    version="0.6.2",
    wheel=Wheel(filename="docopt-0.6.2-py2.py3-none-any.whl", url="", sha256="1" * 64, size=46322),
    source=SourceArchive(
        filename="docopt-0.6.2.tar.gz",
        url="https://index.example/docopt-0.6.2.tar.gz",
        sha256="2" * 64,
        size=25901,
        uploaded=datetime(2014, 6, 16, 11, 18, 57, tzinfo=UTC),
        requires=("setuptools==80.9.0",),
    ),
)
GCC = debian("g++-12", "12.2.0-14")
BUILT = replace(SMALL, python=[*SMALL.python, DOCOPT], build=BuildFiles(python=[SETUPTOOLS], debian=[GCC]))


def changed(change: Any) -> str:
    """Return a lock's text after a change of its table, with the digest that it then has to have."""
    table = tomllib.loads(BUILT.dump())
    change(table)
    return tomli_w.dumps(table)


def entry(table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(p for p in table["packages"] if p["name"] == "docopt")
    return found


def test_it_is_read_as_it_was_written() -> None:
    assert parse_lock(BUILT.dump(), "test") == BUILT
    assert parse_lock(BUILT.dump(), "test").dump() == BUILT.dump()


def test_a_lock_without_one_keeps_its_bytes() -> None:
    assert SMALL.dump() == SMALL_TEXT
    assert "build" not in tomllib.loads(SMALL_TEXT)["tool"]["reprobuild"]


def test_what_is_fetched_is_the_archive_and_what_builds_need() -> None:
    added = [a.filename for a in BUILT.artifacts if a not in list(SMALL.artifacts)]
    assert added == ["docopt-0.6.2.tar.gz", "setuptools-80.9.0-py3-none-any.whl", GCC.filename]
    assert BUILT.size - SMALL.size == 25901 + 1200000 + 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: entry(t)["sdist"].update(name="../x.tar.gz"), "sdist"),
        (lambda t: entry(t)["sdist"].update(path="x"), r"sdist\.path: unknown key"),
        (lambda t: entry(t)["sdist"]["hashes"].update(sha256="x"), r"sdist\.hashes\.sha256"),
        (lambda t: entry(t).update(wheels=[]), r"packages\[0\]\.wheels: unknown key"),
        (lambda t: entry(t).pop("tool"), r"packages\[0\]\.tool: missing"),
        (lambda t: entry(t)["tool"]["reprobuild"].update(more=1), r"more: unknown key"),
        (
            lambda t: entry(t)["tool"]["reprobuild"]["wheel"].update(name="other-1-py3-none-any.whl"),
            "wheel of docopt",
        ),
        (
            lambda t: entry(t)["tool"]["reprobuild"]["wheel"].update(url="https://x.example/"),
            r"wheel\.url: unknown",
        ),
        (lambda t: entry(t)["tool"]["reprobuild"].update(requires=["b==1", "a==1"]), "a sorted list"),
        (lambda t: entry(t)["tool"]["reprobuild"].update(requires=["cython==3"]), "cython==3 is missing"),
        (lambda t: entry(t)["tool"]["reprobuild"].update(requires=[]), "setuptools==80.9.0 is there, but no"),
        (lambda t: t["packages"].remove(entry(t)), r"build\."),
        (lambda t: t["tool"]["reprobuild"]["build"]["packages"].append({}), r"build\.packages\[1\]"),
        (lambda t: t["tool"]["reprobuild"].update(build=[]), r"build: expected a table"),
        (
            lambda t: t["tool"]["reprobuild"]["build"]["debian"].append(t["tool"]["reprobuild"]["debian"][0]),
            "once",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: Any, what: str) -> None:
    with pytest.raises(LockError, match=what):
        parse_lock(changed(change), "test")


def test_exports_name_the_archive() -> None:
    assert f"docopt==0.6.2 --hash=sha256:{'2' * 64}" in requirements(BUILT)
    assert f"https://index.example/docopt-0.6.2.tar.gz#sha256:{'2' * 64}" in explicit(BUILT)
    components = {c["bom-ref"]: c for c in json.loads(cyclonedx(BUILT))["components"]}
    docopt = components["pkg:pypi/docopt@0.6.2"]
    assert docopt["hashes"][0]["content"] == "1" * 64
    assert docopt["externalReferences"][0]["type"] == "source-distribution"
    assert components["pkg:pypi/setuptools@80.9.0#build"]["scope"] == "excluded"
    assert len(components) == len(json.loads(cyclonedx(BUILT))["components"])


def test_two_platforms_have_each_its_own() -> None:
    both = replace(SMALL.request, platforms=("linux/amd64", "linux/arm64"))
    one: Lock = replace(BUILT, request=both)
    other = replace(BUILT, request=both, platform="linux/arm64")
    assert parse_locks(dump_locks([one, other]), "test") == (one, other)


def test_there_is_no_self_contained_dockerfile() -> None:
    with pytest.raises(RenderError, match="docopt: built from source"):
        render_self_contained(BUILT, DebianRoot(urls={}, digest="sha256:" + "0" * 64))


@pytest.mark.slow
def test_a_lock_has_it_and_reads_it_back(resolve: Resolve, server: GitServer, index: Index) -> None:
    tree = files(requires=("filelock",))
    tree["pyproject.toml"] += '[tool.uv.sources]\nfilelock = { git = "https://git.example/filelock" }\n'
    repository(server.root / "tool", {f"py/{name}": text for name, text in tree.items()})
    text = f"tool @ git+{server.url}/tool/.git#subdirectory=py"
    lost = "filelock is taken from the index"
    with pytest.raises(ResolveError, match="filelock was not found") as caught:
        resolve(text)
    assert lost in caught.value.hint
    index.add("filelock", "1.0")
    resolve(text)
    assert [line for line in resolve.notes if lost in line]
    tool, _ = source_of(resolve)
    lock = replace(LOCK, python=[*LOCK.python, tool], build=resolve.build)
    assert parse_lock(lock.dump(), "x") == lock
    assert tool.source is not None
    assert tool.source.subdirectory == "py"
    for old, new in (
        (tool.source.commit, tool.source.commit[:12]),
        (f"{server.url}/tool", "file:///etc"),
        ('subdirectory = "py"', 'subdirectory = "../py"'),
        ('type = "git"', 'type = "hg"'),
    ):
        with pytest.raises(LockError, match="vcs"):
            parse_lock(lock.dump().replace(old, new), "x")
