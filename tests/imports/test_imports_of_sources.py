"""Locks of other tools with a package that exists only as source, and one from git: to the lock."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uv

from conftest import needs
from reprobuild.fetch.scheduler import fetch
from reprobuild.lock.packages import PythonPackage
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve.debian_system import System
from reprobuild.sources import workshop
from support.git_server import git_server, repository
from support.index import Index
from support.python_root import PYTHON, python_root
from support.sdists import PYPROJECT, backend, sdist, serve, serve_pip

if TYPE_CHECKING:
    from support.commands import Call

pytestmark = pytest.mark.skipif(PYTHON != "3.11", reason="the imported locks are for Python 3.11")
pytest_plugins = ["support.commands", "support.family"]

PROJECT = """
[project]
name = "ours"
version = "1"
requires-python = "==3.11.*"
dependencies = ["tool==1.0", "repo"]
"""


def uv_lock(index: Index, address: str, commit: str) -> str:
    Path("pyproject.toml").write_text(
        f'{PROJECT}[tool.uv.sources]\nrepo = {{ git = "{address}", rev = "{commit}" }}\n'
        # uv, which builds on this machine, need not ask what they require.
        '[[tool.uv.dependency-metadata]]\nname = "tool"\nversion = "1.0"\nrequires-dist = []\n'
        '[[tool.uv.dependency-metadata]]\nname = "repo"\nversion = "0.1"\nrequires-dist = []\n'
    )
    command = [uv.find_uv_bin(), "lock", "--quiet", "--python", sys.executable, "--no-python-downloads"]
    subprocess.run(command, check=True)
    return "uv.lock"


def _hash(index: Index) -> str:
    return "sha256:" + next(file.sha256 for file in index.files if file.project == "tool")


def poetry_lock(index: Index, address: str, commit: str) -> str:
    file = f'{{file = "tool-1.0.tar.gz", hash = "{_hash(index)}"}}'
    Path("poetry.lock").write_text(
        f'[[package]]\nname = "tool"\nversion = "1.0"\ngroups = ["main"]\nfiles = [{file}]\n'
        '[[package]]\nname = "repo"\nversion = "0.1"\ngroups = ["main"]\nfiles = []\n'
        f'[package.source]\ntype = "git"\nurl = "{address}"\nreference = "main"\n'
        f'resolved_reference = "{commit}"\n'
        '[metadata]\nlock-version = "2.1"\npython-versions = "==3.11.*"\n'
    )
    return "poetry.lock"


def pdm_lock(index: Index, address: str, commit: str) -> str:
    file = f'{{file = "tool-1.0.tar.gz", hash = "{_hash(index)}"}}'
    Path("pdm.lock").write_text(
        '[metadata]\nlock_version = "4.5.0"\nrequires_python = "==3.11.*"\n'
        f'[[package]]\nname = "tool"\nversion = "1.0"\ngroups = ["default"]\nfiles = [{file}]\n'
        f'[[package]]\nname = "repo"\nversion = "0.1"\ngroups = ["default"]\ngit = "{address}"\n'
        f'revision = "{commit}"\n'
    )
    return "pdm.lock"


def pipfile_lock(index: Index, address: str, commit: str) -> str:
    packages = {
        "tool": {"version": "==1.0", "hashes": [_hash(index)]},
        "repo": {"git": address, "ref": commit},
    }
    meta = {"requires": {"python_version": "3.11"}, "sources": []}
    Path("Pipfile.lock").write_text(json.dumps({"_meta": meta, "default": packages, "develop": {}}))
    return "Pipfile.lock"


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(uv_lock, marks=pytest.mark.core),
        *(pytest.param(each, marks=pytest.mark.slow) for each in (poetry_lock, pdm_lock, pipfile_lock)),
    ],
)
def test_source_and_git_are_built_and_locked(
    write: Callable[[Index, str, str], str],
    family: Index,
    apt: None,
    call: Call,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs("crun")
    needs("git")
    root = python_root(tmp_path_factory.mktemp("root"))
    monkeypatch.setattr(workshop, "system_folders", lambda *_: [root])  # in place of Debian's packages
    monkeypatch.setattr(System, "build_packages", lambda *_, **__: ())
    monkeypatch.setattr(workshop, "fetch", lambda lock, *rest: fetch(replace(lock, debian=()), *rest))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    family.files = [file for file in family.files if file.project != "pip"]
    serve_pip(family)
    serve(family, "tool", "1.0", sdist("tool", "1.0"))
    with git_server(tmp_path_factory.mktemp("served")) as server:
        files = {"pyproject.toml": PYPROJECT, "backend.py": backend("repo", "0.1")}
        commit = repository(server.root / "repo", files)
        file = write(family, f"{server.url}/repo/.git", commit)
        said = call("lock", "--from", file, "--cuda", "12.1", "--name", "ours")
    assert said.status == 0, said.err
    lock = parse_lock(Path("envs/pylock.ours.toml").read_text(), "")
    sources: dict[str, PythonPackage] = {p.name: p for p in lock.python if p.source is not None}
    assert sorted(sources) == ["repo", "tool"]
    tool, repo = sources["tool"].source, sources["repo"].source
    assert tool is not None
    assert repo is not None
    assert f"sha256:{tool.sha256}" == _hash(family)
    assert (repo.kind, repo.commit) == ("vcs", commit)
