"""Stand-ins for NVIDIA's devices, driver and hook in daemons.

PYTEST_DONT_REWRITE: test modules import its constants before pytest loads its fixtures.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from reprobuild.engines.cdi import KIND
from support.engines import Site

SHOW = (
    "head -c 1 /dev/nvidia0 | od -An -tu1; cat /driver.txt; echo $GIVEN; (echo x >> /driver.txt) 2>&-; exit 3"
)
"""Reads the stand-in device, which is /dev/zero, and the stand-in library; writes to neither."""


def specification(folder: Path) -> dict[str, Any]:
    """A CDI file, as `nvidia-ctk cdi generate` makes them, whose device is /dev/zero."""
    (folder / "driver.txt").write_text("the driver\n")
    mount = {
        "hostPath": str(folder / "driver.txt"),
        "containerPath": "/driver.txt",
        "options": ["ro", "bind"],
    }
    node = {"path": "/dev/nvidia0", "hostPath": "/dev/zero", "type": "c", "major": 1, "minor": 5}
    return {
        "cdiVersion": "0.5.0",
        "kind": KIND,
        "devices": [{"name": "all", "containerEdits": {"deviceNodes": [node]}}],
        "containerEdits": {"mounts": [mount], "env": ["GIVEN=by CDI"]},
    }


def small_image(site: Site, root: Path, folder: Path) -> str:
    """A Debian with a shell; return its digest."""
    archive = folder / "small.tar"
    folders = ("bin", "lib", "lib64", "usr/bin", "usr/lib", "usr/lib64")
    subprocess.run(["tar", "-C", root, "-cf", archive, *folders], check=True)
    site.call("import", str(archive), "small:1")
    archive.unlink()
    return "sha256:" + site.call("image", "inspect", "--format", "{{.Id}}", "small:1").strip().removeprefix(
        "sha256:"
    )
