"""How two layers with the same files differ; whole images are compared in `cli/test_cli_verify.py`."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from reprobuild.verify.rebuilt import why_layers_differ


def layer(folder: Path, *names: str, time: int = 1, level: int = 0) -> Path:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.mtime = time
            tar.addfile(info)
    data = gzip.compress(out.getvalue(), level) if level else out.getvalue()
    path = folder / f"{hash((names, time, level)):x}"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("names", "time", "level", "cause"),
    [
        (("b", "a"), 1, 0, "order of the paths in a layer"),
        (("a", "b"), 5, 0, "time: /a is of 1, not 5"),
        (("a", "b"), 1, 9, "compression or headers of a layer"),
        (("a", "b"), 1, 0, "the manifest or the configuration"),
    ],
)
def test_what_differs_in_layers(
    names: tuple[str, ...], time: int, level: int, cause: str, tmp_path: Path
) -> None:
    below, one = layer(tmp_path, "x"), layer(tmp_path, "a", "b")
    other = layer(tmp_path, *names, time=time, level=level)
    assert why_layers_differ([below, one], [below, other]) == cause
    assert why_layers_differ([below], [below, one]) == "1 layers, not 2"
    assert why_layers_differ([], [below]) == "time stamps, order, layering or compression"
