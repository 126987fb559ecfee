"""The keys kernels and kernel-choices of a request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprobuild.errors import RequestError
from reprobuild.pipeline.workspace import read_env
from reprobuild.request.kernels import document
from reprobuild.request.model import Request

KIND = {"torch": "2.13.0+cpu", "commit": "c0ffee", "cpu": "AVX2", "gpus": []}
RECORD = {"schema": 1, "kind": KIND, "choices": {"inductor/cache/44": {"cache": {}}}}


def written(folder: Path, more: str) -> Path:
    file = folder / "envs/torch-cpu.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'name = "torch-cpu"\ncuda = "cpu"\n[determinism]\n{more}\n')
    return file


def test_a_record_gets_into_the_request_and_from_there_into_an_image(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/cpu.json").write_text(json.dumps(RECORD, indent=1))
    file = written(tmp_path, 'kernels = "locked"\nkernel-choices = ["cpu.json"]')
    request = read_env(str(file)).request
    assert request.kernels.locked
    assert json.loads(document(request.kernels.choices)) == [RECORD]
    assert Request.from_dict(request.to_dict(), "lock") == request
    plain = Request.from_dict({"name": "torch-cpu", "cuda": "cpu"}, "x")
    assert "determinism.kernel-choices: torch 2.13.0+cpu, CPU AVX2, there not set" in request.differences(
        plain
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('kernels = "on"', r"'on' is not a valid kernels: expected \"locked\""),
        ('kernel-choices = ["cpu.json"]', "kernel-choices: has no effect alone"),
        ('kernels = "locked"\nkernel-choices = ["none.json"]', r"none\.json: no such file"),
        ('kernels = "locked"\nkernel-choices = ["../../cpu.json"]', r"is not a \.json file below"),
        ('kernels = "locked"\nkernel-choices = ["bad.json"]', r"bad\.json: not a record of kernel choices"),
        ('kernels = "locked"\nkernel-choices = ["cpu.json", "cpu.json"]', "two records for one kind"),
        (
            'kernels = "locked"\nkernel-choices = ["twice.json"]',
            r"twice\.json: not valid JSON: a key is",
        ),
        ('kernels = "locked"\nkernel-choices = ["nan.json"]', r"nan\.json: .*NaN"),
        ('kernels = "locked"\nkernel-choices = [3]', "expected text in quotes"),
    ],
)
def test_what_is_not_valid_is_named(more: str, words: str, tmp_path: Path) -> None:
    file = written(tmp_path, more)
    (tmp_path / "envs/cpu.json").write_text(json.dumps(RECORD))
    (tmp_path / "envs/bad.json").write_text("{}")
    (tmp_path / "envs/twice.json").write_text('{"schema": 1, "schema": 1}')
    (tmp_path / "envs/nan.json").write_text('{"schema": NaN}')
    with pytest.raises(RequestError, match=words):
        read_env(str(file))
