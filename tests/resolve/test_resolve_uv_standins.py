"""Empty wheels that stand for what has no wheel."""

from __future__ import annotations

import zipfile
from email.parser import Parser
from pathlib import Path

from reprobuild.resolve.uv_standins import write_standins


def test_a_wheel_that_requires_nothing_for_each_package_that_pip_could_know(tmp_path: Path) -> None:
    provided = {"numpy": "2.1.0", "local": "1.0+cu121", "_openmp": "1", "Upper": "1", "old": "2024a-x y"}
    assert write_standins(tmp_path, provided) == {"numpy": "2.1.0+conda", "local": "1.0+cu121.conda"}
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["local-1.0+cu121.conda-py3-none-any.whl", "numpy-2.1.0+conda-py3-none-any.whl"]
    with zipfile.ZipFile(tmp_path / names[1]) as wheel:
        said = Parser().parsestr(wheel.read("numpy-2.1.0+conda.dist-info/METADATA").decode())
    assert (said["Name"], said["Version"], said["Requires-Dist"]) == ("numpy", "2.1.0+conda", None)
