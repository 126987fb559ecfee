from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reprobuild.errors import DifferenceError, ImageError
from support.images import Entry, docker_archive, layer
from support.two_archives import run

pytest_plugins = ["support.two_archives"]


def test_equal_images(pair: tuple[str, str]) -> None:
    done = run("compare", pair[0], pair[0])
    assert done.exit_code == 0
    digests = {line.split()[1] for line in done.stdout.splitlines() if line.startswith(("first", "second"))}
    assert len(digests) == 1


def test_differences_are_printed_by_path_and_kind(
    pair: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("compare", *pair)
    assert isinstance(done.exception, DifferenceError)
    assert "differ in 4 places" in done.exception.message
    kinds = [": ".join(line.split(": ")[:2]) for line in done.stdout.splitlines() if "→" in line]
    assert kinds == ["/etc/a: mode", "/etc/a: content", "/new: missing", "Env A: setting"]
    cut = run("compare", *pair, "--limit", "1")
    assert cut.stdout.count("→") == 1
    assert isinstance(cut.exception, DifferenceError)
    assert "1 of them are shown" in cut.exception.message


def test_a_name_of_two_lines_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name could end with a line that says the contrary; diffoscope writes names as they are."""
    program = tmp_path / "diffoscope"
    program.write_text('#!/bin/sh\nfor last; do :; done\nfind "$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    images = [
        docker_archive(
            tmp_path / f"{n.decode()}.tar",
            [
                layer(
                    "etc/", Entry(path="etc/a\nthey are the same", content=n), Entry(path="etc/b", content=n)
                )
            ],
            {"Labels": {"a\nthey are the same": n.decode()}},
        )
        for n in (b"1", b"2")
    ]
    done = run("compare", *map(str, images))
    assert "/etc/a\\u000athey are the same: content: " in done.stdout
    assert "Label a\\u000athey are the same: setting: 1 → 2" in done.stdout
    assert "b/etc/b" in done.stdout
    assert "they are the same" not in {line[:17] for line in done.stdout.splitlines()}


def test_differences_as_json(pair: tuple[str, str]) -> None:
    done = run("compare", *pair, "--json")
    found = json.loads(done.stdout)
    assert isinstance(done.exception, DifferenceError)
    assert [image["image"] for image in found["images"]] == list(pair)
    assert len({image["tree"] for image in found["images"]}) == 2
    assert found["differences"][0] == {"path": "/etc/a", "kind": "mode", "first": "644", "second": "600"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.touch, "it is empty"),
        (Path.mkdir, "not an OCI layout"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.write_text("{}"), "ends in the middle of an entry"),
    ],
)
def test_what_is_no_image_is_named(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    file = tmp_path / "it"
    make(file)
    for argv in (["check", str(file)], ["compare", str(file), str(file)]):
        error = run(*argv).exception
        assert isinstance(error, ImageError)
        assert message in error.message
        assert str(file) in error.message
