"""Solves for conda packages. Runs by itself, within limits; `conda_solver.solve` starts it.

``solve_conda.py ANSWER`` reads a job from standard input, as JSON: ``specs``, ``channels``, ``alias``,
``platform``, ``virtual`` (name, version and build of each), ``constraints``, ``exclude_newer`` (ISO 8601),
``keep`` (name, file name and sha256 of each) and ``largest``, the most bytes of a file that it may write,
that is of a channel's list when it is unpacked. Writes to ANSWER: ``{"packages": [{…}, …]}``, or
``{"error": KIND, "text": TEXT}`` with KIND ``unsolvable``, ``channel`` or ``spec``. Imports nothing of
reprobuild.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import rattler
from rattler.channel import ChannelConfig
from rattler.exceptions import GatewayError, InvalidMatchSpecError, SolverError


async def _solved(job: dict[str, Any]) -> list[rattler.RepoDataRecord]:
    config = ChannelConfig(channel_alias=job["alias"]) if job["alias"] else ChannelConfig()
    gateway = rattler.Gateway(client=rattler.Client.default_client())
    sources = [rattler.Channel(name, config) for name in job["channels"]]
    platforms = [rattler.Subdir(job["platform"]), rattler.Subdir("noarch")]
    wanted = {(filename, sha256) for _, filename, sha256 in job["keep"]}
    kept = []
    if wanted:
        names = [rattler.MatchSpec(name) for name, _, _ in job["keep"]]
        found = await gateway.query(sources, platforms, names, recursive=False)
        kept = [
            r for channel in found for r in channel if r.sha256 and (r.file_name, r.sha256.hex()) in wanted
        ]
    return await rattler.solve(
        sources,
        [rattler.MatchSpec(_with_address(spec, config)) for spec in job["specs"]],
        gateway=gateway,
        platforms=platforms,
        locked_packages=kept,
        virtual_packages=[
            rattler.GenericVirtualPackage(
                rattler.PackageName(name), rattler.Version(version), rattler.BuildString(build)
            )
            for name, version, build in job["virtual"]
        ],
        constraints=[rattler.MatchSpec(spec) for spec in job["constraints"]],
        exclude_newer=datetime.fromisoformat(job["exclude_newer"]) if job["exclude_newer"] else None,
    )


def _with_address(spec: str, config: ChannelConfig) -> str:
    """Write a channel that a spec names by its address: the solver knows no alias but its own."""
    channel, colons, rest = spec.rpartition("::")
    return f"{rattler.Channel(channel, config).base_url}::{rest}" if colons else spec


def _package(record: rattler.RepoDataRecord) -> dict[str, Any]:
    time = record.timestamp
    return {
        "name": record.name.normalized,
        "version": str(record.version),
        "build": str(record.build),
        "subdir": record.subdir,
        "file_name": record.file_name,
        "url": record.url,
        "sha256": None if record.sha256 is None else record.sha256.hex(),
        "md5": None if record.md5 is None else record.md5.hex(),
        "size": record.size,
        "depends": list(record.depends),
        "constrains": list(record.constrains),
        "uploaded": None if time is None else time.astimezone(UTC).replace(microsecond=0).isoformat(),
    }


def main(answer: Path) -> None:
    """Solve and write the result."""
    job = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_FSIZE, (job["largest"], job["largest"]))
    said: dict[str, Any]
    try:
        said = {"packages": [_package(record) for record in asyncio.run(_solved(job))]}
    except SolverError as error:
        said = {"error": "unsolvable", "text": str(error)}
    except GatewayError as error:
        said = {"error": "channel", "text": str(error)}
    except (InvalidMatchSpecError, ValueError) as error:
        said = {"error": "spec", "text": str(error)}
    answer.write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    # Its threads may still be at work; an interpreter that ends in order then aborts.
    os._exit(0)
