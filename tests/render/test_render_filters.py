"""Filters of templates: no value is written without one."""

from __future__ import annotations

import jinja2
import pytest

from reprobuild.render import filters


def test_a_template_cannot_write_a_value_without_a_filter() -> None:
    environment = filters.environment()
    with pytest.raises(TypeError, match="without a filter"):
        environment.from_string("RUN {{ value }}").render(value="x")
    with pytest.raises(jinja2.UndefinedError):
        environment.from_string("RUN {{ valeu | comment('x') }}").render(value="x")
