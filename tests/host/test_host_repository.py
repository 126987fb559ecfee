"""A repository of a stranger's: what its settings name is not run when its commit and its files are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import HostError
from reprobuild.host import repository as module
from reprobuild.twice.receipt.project import code_of
from support.git_server import commit, git
from support.git_server import repository as made


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    needs("git")
    made(tmp_path / "here", {"train.py": "1"})
    return tmp_path / "here"


@pytest.fixture
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that leaves a file ``ran`` beside itself, and copies what it is given."""
    program = tmp_path_factory.mktemp("trap") / "program"
    program.write_text('#!/bin/sh\necho "$@" >> "$(dirname "$0")/ran"\ncat\n')
    program.chmod(0o755)
    return program


def touched(repository: Path, name: str = "train.py") -> None:
    """Rewrite a file in another inode, so that git has to compare its content."""
    content = (repository / name).read_bytes()
    (repository / name).unlink()
    (repository / name).write_bytes(content)


@pytest.mark.parametrize("way", ["clean", "process"])
def test_no_filter_of_the_repository_is_run(repository: Path, trap: Path, way: str) -> None:
    git(repository, "config", f"filter.x.{way}", str(trap))
    git(repository, "config", "filter.x.required", "true")
    (repository / ".git/info/attributes").write_text("* filter=x\n")
    (repository / ".gitattributes").write_text("* filter=x\n")
    touched(repository)
    found = code_of(repository)
    assert not (trap.parent / "ran").exists()
    assert found is not None
    assert (found.commit, found.dirty) == (git(repository, "rev-parse", "HEAD"), False)


def test_no_program_of_a_submodule_or_of_an_included_file_is_run(
    repository: Path, trap: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    made(other, {"inner.py": "1"})
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    commit(repository, {})
    clean = code_of(repository)
    assert clean is not None
    assert not clean.dirty
    (repository / ".git/more").write_text(f'[core]\n\tfsmonitor = {trap}\n[filter "x"]\n\tclean = {trap}\n')
    (repository / ".git/modules/sub/info").mkdir(exist_ok=True)
    for place in (repository / ".git", repository / ".git/modules/sub"):
        with (place / "config").open("a") as file:
            file.write(f"[include]\n\tpath = {repository}/.git/more\n")
        (place / "info/attributes").write_text("* filter=x\n")
    touched(repository / "sub", "inner.py")
    touched(repository)
    assert code_of(repository) == clean
    (repository / "sub/inner.py").write_text("2")
    changed = code_of(repository)
    assert changed is not None
    assert changed.dirty
    assert changed.tree != clean.tree
    assert not (trap.parent / "ran").exists()


def test_a_repository_that_has_no_objects_fetches_none(repository: Path, trap: Path) -> None:
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "x"),
        ("remote.x.promisor", "true"),
        ("remote.x.url", f"ext::{trap} %S"),
        ("protocol.ext.allow", "always"),
    ):
        git(repository, "config", name, value)
    for folder in (repository / ".git/objects").iterdir():
        if len(folder.name) == 2:
            for each in folder.iterdir():
                each.unlink()
    code_of(repository)
    assert not (trap.parent / "ran").exists()


@pytest.mark.parametrize("name", [".git/HEAD", ".git/index", ".gitattributes"])
def test_a_pipe_in_a_repository_is_an_error_that_names_it(
    repository: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that ran in the folder may have left it."""
    monkeypatch.setattr(module, "_SECONDS", 1.0)
    (repository / name).unlink(missing_ok=True)
    os.mkfifo(repository / name)
    touched(repository)
    with pytest.raises(HostError, match="here: git did not read the repository within 1 s") as refused:
        code_of(repository)
    assert "is a pipe" in refused.value.hint
