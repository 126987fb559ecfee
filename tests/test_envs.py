"""The requests that ship with reprobuild."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.request.model import Request, default_name

ENVS = sorted((Path(__file__).resolve().parents[1] / "envs").glob("[!p]*.toml"))


@pytest.mark.parametrize("path", ENVS, ids=lambda path: path.stem)
def test_each_is_valid_and_named_as_its_file(path: Path) -> None:
    request = Request.parse(path.read_text(), path.name)
    assert request.name == path.stem == default_name(request.cuda, request.python)
    assert path.read_text().startswith("# ")


def test_the_default_a_newer_cuda_and_a_cpu_one_ship() -> None:
    cudas = {Request.parse(path.read_text(), path.name).cuda for path in ENVS}
    assert cudas >= {"12.1", "13.0", "cpu"}
