"""Sources that a package from git names for its own dependencies, as uv reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.lock.packages import SourceArchive
from reprobuild.net.session import session
from reprobuild.resolve.unused_sources import lines_on_sources
from reprobuild.sources.source_tree import TreeEntry, keep, pack
from support.resolving import request, resolution

SOURCES = '[tool.uv.sources]\nFoo_Bar = { git = "https://git.example/foo" }\nother = { path = "x" }\n'
REQUIRES = ("foo-bar>=1", "six")


def lines(
    folder: Path,
    files: Mapping[str, str],
    requires: tuple[str, ...] = REQUIRES,
    *,
    subdirectory: str = "",
    kind: str = "vcs",
    asked: str = "tool @ git+https://git.example/tool",
    **keys: Any,
) -> list[str]:
    home = Home(folder / "home")
    entries = [TreeEntry(path.encode(), "file", text.encode()) for path, text in files.items()]
    tree = keep(pack(entries, "tool"), Store(home))
    source = SourceArchive(
        kind=kind,  # type: ignore[arg-type]
        filename="tool.tar",
        url="https://git.example/tool",
        sha256=tree.sha256,
        size=tree.size,
        subdirectory=subdirectory,
    )
    head = "Metadata-Version: 2.1\nName: tool\nVersion: 1\n"
    metadata = head + "".join(f"Requires-Dist: {each}\n" for each in requires)
    wanted = request(packages=[asked, *keys.pop("packages", ())], **keys)
    with session(retries=0) as http:
        about = resolution(http, wanted, host=Host(home, Console(quiet=True)))
    return [*lines_on_sources(Requirement(asked), source, metadata.encode(), about)]


@pytest.mark.parametrize("kind", ["vcs", "directory"])
def test_a_source_that_nothing_uses_is_named(tmp_path: Path, kind: str) -> None:
    (line,) = lines(tmp_path, {"pyproject.toml": SOURCES}, kind=kind)
    assert line == (
        "tool: tool.uv.sources in its pyproject.toml is not used: foo-bar is taken from the index. "
        "To use the source that it names, add `foo-bar @ ADDRESS` to the packages of the request"
    )


def test_a_source_of_an_extra_counts_with_it(tmp_path: Path) -> None:
    requires = ("foo-bar ; extra == 'x'",)
    assert lines(tmp_path, {"pyproject.toml": SOURCES}, requires) == []
    asked = "tool[x] @ git+https://git.example/tool"
    assert len(lines(tmp_path, {"pyproject.toml": SOURCES}, requires, asked=asked)) == 1


def test_the_root_of_a_workspace_names_sources_of_its_members(tmp_path: Path) -> None:
    member = {"py/pyproject.toml": "", "pyproject.toml": f'[tool.uv.workspace]\nmembers = ["py"]\n{SOURCES}'}
    assert len(lines(tmp_path, member, subdirectory="py")) == 1
    # Without a workspace, it is another project.
    assert lines(tmp_path, member | {"pyproject.toml": SOURCES}, subdirectory="py") == []
    (line,) = lines(tmp_path, member | {"pyproject.toml": "["}, subdirectory="py")
    assert "not valid TOML" in line


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ("", {"packages": ["foo-bar @ git+https://git.example/foo"]}),
        ("", {"overrides": ["foo-bar ; python_version < '0'"]}),
        ("", {"kind": "archive"}),
        ("", {"requires": ("six",)}),
        ("", {"requires": ("foo-bar @ https://files.example/foo-1.zip",)}),
        ("", {"requires": ("foo-bar ; os_name == 'nt'",)}),
        ('[tool.uv.sources]\nfoo-bar = [{ path = "x", marker = "os_name == \'nt\'" }]', {}),
        ('[tool.uv.sources]\nfoo-bar = { index = "x" }', {"kind": "directory"}),
        ("[tool.uv]\nsources = 1", {}),
        ("tool = 1", {}),
    ],
)
def test_what_is_decided_elsewhere_is_not_named(tmp_path: Path, more: str, keys: dict[str, Any]) -> None:
    assert lines(tmp_path, {"pyproject.toml": more or SOURCES}, **keys) == []
