from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from reprobuild import __version__
from reprobuild.lock.model import Lock
from reprobuild.render.image_config import default_image_name, image_config
from support.locks import LOCK, OTHER_FILES
from support.strategies import locks


def test_labels_name_the_lock_and_the_stack() -> None:
    assert image_config(LOCK).labels == {
        "dev.reprobuild.cuda": "12.1.105",
        "dev.reprobuild.cudnn": "9.1.0.70",
        "dev.reprobuild.debian": "bookworm",
        "dev.reprobuild.driver": "525.60.13",
        "dev.reprobuild.epoch": "1726358400",
        "dev.reprobuild.lock": LOCK.digest,
        "dev.reprobuild.nccl": "2.20.5",
        "dev.reprobuild.numpy": "1.26.4",
        "dev.reprobuild.profile": "strict",
        "dev.reprobuild.python": "3.11.2",
        "dev.reprobuild.request": LOCK.request.digest,
        "dev.reprobuild.source": "/opt/reprobuild/pylock.toml",
        "dev.reprobuild.torch": "2.4.1",
        "dev.reprobuild.version": __version__,
        "org.opencontainers.image.created": "2024-09-15T00:00:00Z",
        "org.opencontainers.image.description": (
            "PyTorch 2.4.1, CUDA 12.1.105, cuDNN 9.1.0.70, NCCL 2.20.5, Python 3.11.2"
        ),
        "org.opencontainers.image.title": "torch-cu121",
        "org.opencontainers.image.version": "2.4.1",
    }


def test_a_label_names_reprobuild_s_own_files_by_one_digest() -> None:
    lines = f"{'0' * 64}  golden.json\n{'1' * 64}  selftest.py\n"  # as sha256sum prints them
    expected = "sha256:" + hashlib.sha256(lines.encode()).hexdigest()
    assert image_config(replace(LOCK, own_files=OTHER_FILES)).labels["dev.reprobuild.own-files"] == expected


def test_what_starts_and_where() -> None:
    config = image_config(LOCK)
    assert (config.cmd, config.workdir) == (("python3",), "/")


def test_the_lock_s_variables_win() -> None:
    assert image_config(replace(LOCK, variables={"LANG": "de"})).env["LANG"] == "de"


@given(locks())
@settings(max_examples=20)
def test_it_is_sorted_and_a_function_of_the_lock(lock: Lock) -> None:
    config = image_config(lock)
    assert config == image_config(lock)
    assert (list(config.env), list(config.labels)) == (sorted(config.env), sorted(config.labels))
    assert lock.variables.items() <= config.env.items()


_CPU: dict[str, Any] = {"name": "torch-cpu", "cuda": "cpu", "packages": ()}
_PY312: dict[str, Any] = {"name": "torch-cu121-py312", "python": "3.12", "packages": ()}


@pytest.mark.parametrize(
    ("changes", "torch", "name"),
    [
        ({}, "2.4.1", "reprobuild/torch:2.4.1-cu121-py311"),
        ({"name": "vision"}, "2.4.1", "reprobuild/vision:2.4.1-cu121-py311"),
        (_CPU, "2.4.1+cpu", "reprobuild/torch:2.4.1-cpu-py311"),
        (_PY312, "2.4.1", "reprobuild/torch:2.4.1-cu121-py312"),
        ({"torch": "2.4.0", "index": "pytorch"}, "2.4.0", "reprobuild/torch:2.4.0-cu121-py311"),
        ({"packages": ()}, "2.4.1", "reprobuild/torch-cu121:2.4.1-cu121-py311"),
        ({**_CPU, "packages": ("numpy<2",)}, "2.4.1+cpu", "reprobuild/torch-cpu:2.4.1-cpu-py311"),
        ({**_CPU, "profile": "portable"}, "2.4.1+cpu", "reprobuild/torch-cpu:2.4.1-cpu-py311"),
        ({"apt": ("git",)}, "2.4.1", "reprobuild/torch-cu121:2.4.1-cu121-py311"),
        ({"seed": 1}, "2.4.1", "reprobuild/torch-cu121:2.4.1-cu121-py311"),
    ],
)
def test_the_default_name_of_the_image(changes: dict[str, Any], torch: str, name: str) -> None:
    python = [replace(p, version=torch) if p.name == "torch" else p for p in LOCK.python]
    request = replace(LOCK.request, **changes)
    assert default_image_name(replace(LOCK, python=python, request=request)) == name
