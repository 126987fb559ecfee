"""The command ``check``."""

from __future__ import annotations

from reprobuild.errors import ImageError
from support.two_archives import run

pytest_plugins = ["support.two_archives"]


def test_an_image_that_is_not_ours(pair: tuple[str, str]) -> None:
    done = run("check", pair[0])
    assert isinstance(done.exception, ImageError)
    assert "not an image made by reprobuild" in done.exception.message
