from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import GOLDEN
from reprobuild.errors import RenderError
from reprobuild.render.devcontainer import devcontainer
from support.locks import LOCK

IMAGE = "registry.example/team/torch@sha256:" + 64 * "a"


def test_it_is_golden_text(golden: Callable[[Path, bytes], None]) -> None:
    files = devcontainer(LOCK, IMAGE, b"a bundle")
    assert files[".devcontainer/ca-certificates.crt"] == b"a bundle"
    golden(GOLDEN / "devcontainer.json", files[".devcontainer/devcontainer.json"])


def test_an_image_that_nobody_else_has_is_refused() -> None:
    with pytest.raises(RenderError, match="not an image in a registry, named by its digest"):
        devcontainer(LOCK, "reprobuild/torch:2.4.1-cu121-py311")
