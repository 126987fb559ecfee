"""How long the conda part of a cold lock takes, beside py-rattler's own solve of the same request."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from support.channel import Channel, serve_channel, small_forge
from support.measuring import Printer, medians, watch

ROUNDS = 5
OTHERS = 100_000
"""Packages beside those that are asked for, so that reading the channel's list takes its time."""

SPECS = ["pytorch 2.4.*", "other7"]

_OURS = """
import json, sys, time
from reprobuild.request.model import Request
from reprobuild.resolve.conda import resolve_conda
from reprobuild.resolve.target import TargetPython
table = {"cuda": "12.1", "conda": {"channels": [sys.argv[1]], "packages": sys.argv[2:]}}
request = Request.from_dict(table, "")
target = TargetPython("3.11", "amd64", (2, 36))
start = time.perf_counter()
found = resolve_conda(request, request.conda, target, existing=None, upgrade=())
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted(package.url for package in found)]))
"""
_THEIRS = """
import json, sys, time
start = time.perf_counter()
import asyncio
from rattler import BuildString, Channel, Gateway, GenericVirtualPackage, MatchSpec, PackageName, Subdir
from rattler import Version, solve
virtual = {"__unix": "0", "__linux": "5.10", "__glibc": "2.36", "__cuda": "12.1"}
found = asyncio.run(solve(
    [Channel(sys.argv[1])],
    [MatchSpec(spec) for spec in ("python 3.11.*", "numpy", *sys.argv[2:])],
    gateway=Gateway(),
    platforms=[Subdir("linux-64"), Subdir("noarch")],
    virtual_packages=[
        GenericVirtualPackage(PackageName(n), Version(v), BuildString("0")) for n, v in virtual.items()
    ],
    constraints=[MatchSpec("pytorch * *cuda*"), MatchSpec("cuda-version 12.1.*")],
))
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted(record.url for record in found)]))
"""


def large_forge(channel: Channel) -> None:
    """A channel whose list is long, and of which a solve needs little, as with the large public ones."""
    small_forge(channel)
    channel.index()
    for file in channel.folder.glob("*/repodata.json"):
        data: dict[str, Any] = json.loads(file.read_bytes())
        packages = data["packages.conda"]
        model = next(iter(packages.values()))
        for number in range(OTHERS // 2):
            name, version = f"other{number % 2000}", f"1.{number // 2000}"
            other = {**model, "name": name, "version": version, "constrains": []}
            other["depends"] = [f"other{number % 2000 // 2}", "python >=3.8"]
            packages[f"{name}-{version}-0.conda"] = other
        file.write_text(json.dumps(data))


def test_conda_s_part_against_py_rattler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every run is a process with an empty cache; both import py-rattler, and find the same packages.

    What a lock with conda takes more than one without is the part, not the start of the program before it.
    """
    times: dict[str, list[float]] = defaultdict(list)
    answers = []
    with serve_channel(tmp_path / "forge") as channel:
        large_forge(channel)
        for number in range(ROUNDS):
            for title, code in (("py-rattler's solve", _THEIRS), ("conda's part", _OURS)):
                home = tmp_path / f"{title}{number}"
                home.mkdir()
                env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}
                done = watch([sys.executable, "-c", code, channel.url, *SPECS], cwd=home, env=env)
                seconds, packages = json.loads(done.stdout)
                times[title].append(seconds)
                times[f"{title}, whole process"].append(done.seconds)
                answers.append(packages)
    assert len(answers[0]) > 10
    assert all(packages == answers[0] for packages in answers)
    say = Printer(capsys, f"conda, a channel of {OTHERS} packages, on loopback")
    say.series(times)
    middle = medians(times)
    ratio = middle["conda's part"] / middle["py-rattler's solve"]
    say(f"  ratio {ratio:.2f}, goal 2")
