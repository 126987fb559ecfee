"""Run as a program: links the conda packages of a folder, and writes the hash of the layer's tar.

``link_once.py LOCK PACKAGES SCRATCH``: PACKAGES is a JSON list of name, version, build, file and sha256, that
come in the place of the lock's own.
"""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.layers.conda import link, write_packages
from reprobuild.lock.packages import CondaPackage
from reprobuild.oci.tar_writer import LayerWriter
from reprobuild.pipeline.workspace import read_lock


def main() -> None:
    if umask := os.environ.get("TEST_UMASK"):
        os.umask(int(umask, 8))
    rows = json.loads(Path(sys.argv[2]).read_bytes())
    packages = [
        CondaPackage(
            name=name,
            version=version,
            build=build,
            subdir=Path(file).parent.name,
            url=f"https://conda.example/forge/{Path(file).parent.name}/{Path(file).name}",
            sha256=sha256,
            md5=None,
            size=Path(file).stat().st_size,
            depends=(),
        )
        for name, version, build, file, sha256 in rows
    ]
    store, scratch = Store(Home.from_environment()), Path(sys.argv[3])
    for package, row in zip(packages, rows, strict=True):
        with store.partial(package.sha256) as partial:
            assert partial is not None
            partial.file.write(Path(row[3]).read_bytes())
            store.add(package.sha256, partial.path)
    scratch.mkdir()
    lock = replace(read_lock(Path(sys.argv[1])), conda=tuple(packages))
    writer = LayerWriter(io.BytesIO())
    write_packages(link(lock, store, scratch, Console(quiet=True)), lock.conda, writer)
    sys.stdout.write(writer.close().diff_id)


if __name__ == "__main__":
    main()
