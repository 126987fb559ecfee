"""Filters of templates: no value is written without one."""

from __future__ import annotations

import subprocess

import jinja2
import pytest

from reprobuild.render import filters


def test_a_template_cannot_write_a_value_without_a_filter() -> None:
    environment = filters.environment()
    with pytest.raises(TypeError, match="without a filter"):
        environment.from_string("RUN {{ value }}").render(value="x")
    with pytest.raises(jinja2.UndefinedError):
        environment.from_string("RUN {{ valeu | comment('x') }}").render(value="x")


@pytest.mark.parametrize("value", ["{{ name }}", "{{{name}}}", "{{{{", "{", "{% raw %}", " # '*' & "])
def test_a_value_in_apptainer_s_definition_is_no_build_argument_and_the_same_to_a_shell(value: str) -> None:
    environment = filters.environment()
    line = environment.from_string("{{ value | of_definition('x') }}").render(value=value)
    assert "{{" not in line
    said = subprocess.run(["sh", "-c", f"printf %s. {line}"], capture_output=True, text=True, check=True)
    assert said.stdout == f"{value}."
