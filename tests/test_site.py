"""The documentation site: built from the pages, with no broken link; one that is broken fails the build."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


def test_the_site_is_built_from_the_pages_and_a_broken_link_fails(tmp_path: Path) -> None:
    assert ".venv/bin/python .ci/site FOLDER " in (TOP / "CONTRIBUTING.md").read_text()
    command = [sys.executable, str(TOP / ".ci/site"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.stem for path in (TOP / "docs").glob("*.md")}
    assert pages <= {path.parent.name for path in (tmp_path / "site").glob("*/index.html")}
    first = (tmp_path / "site/index.html").read_text()
    for group in ("To use it", "In a team", "To trust it", "To change it"):
        assert re.search(rf"<label[^>]*>\s*(<span[^>]*>)?\s*{group}\s*<", first), group
    assert 'href="team-images/"' in first
    assert 'data-md-color-scheme="slate"' in first

    page = tmp_path / "docs/ci.md"
    page.write_text(page.read_text() + "\n[gone](no-such-page.md)\n")
    again = [sys.executable, "-m", "uv", "tool", "run", "--from", "zensical==0.0.73", "zensical"]
    done = subprocess.run(
        [*again, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
