"""Links conda packages into a prefix. Runs by itself in a sandbox; `conda.link` starts it there.

``link_conda.py FOLDER PREFIX PACKAGES ARCHIVE…``: FOLDER is empty and gets the prefix as ``prefix``; PREFIX
is where the image will have it; PACKAGES is a folder in which Python finds py-rattler; the archives are conda
packages under their own names. Writes ``FOLDER/said.json``: ``{"packages": [[NAME, VERSION, BUILD], …]}`` as
the archives call themselves, or ``{"error": TEXT}``. Imports nothing of reprobuild.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any


async def _link(folder: Path, prefix: str, archives: list[Path], rattler: Any) -> list[list[str]]:
    records = []
    for archive in archives:
        try:
            record = await rattler.RepoDataRecord.from_package_archive(archive)
        except Exception as error:  # noqa: BLE001 -- as in `main`
            raise ValueError(f"{archive.name}: not a conda package: {error}") from None
        record.url = archive.as_uri()
        records.append(record)
    await rattler.install(
        records,
        folder / "prefix",
        cache_dir=folder / "cache",
        alternative_target_prefix=prefix,
        execute_link_scripts=False,
        show_progress=False,
    )
    return [[record.name.normalized, str(record.version), str(record.build)] for record in records]


def main(folder: Path, prefix: str, packages: str, *archives: str) -> None:
    """Link the packages and write the result."""
    sys.path.append(packages)
    import rattler  # noqa: PLC0415 -- where it is has only now been told

    said: dict[str, Any]
    try:
        said = {"packages": asyncio.run(_link(folder, prefix, [Path(a) for a in archives], rattler))}
    except Exception as error:  # noqa: BLE001 -- py-rattler has a class a cause, and no common one
        said = {"error": " ".join(str(error).split())}
    shutil.rmtree(folder / "cache", ignore_errors=True)
    (folder / "said.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    # py-rattler's threads may still be at work; an interpreter that ends in order then aborts.
    os._exit(0)
