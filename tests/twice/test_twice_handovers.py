"""Which hand-overs between threads the recorder follows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from reprobuild import in_image
from support.twice import PROGRAMS


def test_each_object_that_hands_over_is_followed_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "reprobuild_twice").symlink_to(Path(in_image.__file__).parent / "twice")
    (tmp_path / "sitecustomize.py").write_text("import reprobuild_twice\n")
    (tmp_path / "records").mkdir()
    variables = {
        "PYTHONPATH": str(tmp_path),
        "REPROBUILD_TWICE": str(tmp_path / "records"),
        "REPROBUILD_TWICE_TRACE": "0-0",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "handovers.py")],
        env=variables,
        capture_output=True,
        check=True,
        timeout=60,
    )
    found = json.loads(done.stdout)
    assert len(found) > 20
    assert found == {name: not name.startswith("-") for name in found}, done.stderr.decode()
