"""What all imports share: the Python that a project allows."""

from __future__ import annotations

import pytest

from support.fixtures import fixtures_of
from support.team_files import Write, table

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    ("said", "python"),
    [("3.12.4\n", "3.12"), ("# ours\ncpython-3.10\n", "3.10"), ("3.9", "3.11"), ("pypy", "3.11")],
)
def test_a_python_version_beside_the_project_counts_where_it_fits(
    write: Write, said: str, python: str
) -> None:
    write(".python-version", said)
    text = "[project]\nname = 'a'\nrequires-python = '>=3.10'\ndependencies = ['torch==2.4.1+cu121']\n"
    assert table(write("pyproject.toml", text))["python"] == python
