"""What a registry and an engine need not be given twice: five images, and layers in place of wheels."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from support.engines import Site
from support.measuring import Printer
from support.registry import serve_registry
from support.stack import NAME, Stack

pytest_plugins = ["support.shared"]

OTHERS = ("humanize", "tabulate", "toolz", "colorama")
"""Small packages, one of which each of four further images has."""


def test_five_images_that_share_all_but_one_package(
    stack: Stack, docker26: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say = Printer(capsys, "five images of CUDA 12.1 that share all but one package")
    stack.image()
    names = [NAME]
    for other in OTHERS:
        names.append(f"team/{other}:1")
        seconds = stack.image("--tag", names[-1], lock=stack.locked(other)).seconds
        say(f"  {seconds:6.1f} s  {names[-1]}: fetch, build and self-test")
    with serve_registry(tmp_path / "registry") as host:
        for number, name in enumerate(names):
            done = stack.run("push", name, f"{host}/team/torch:{number}", "--json")
            pushed = json.loads(done.stdout)
            sent, there = pushed["sent"], pushed["there"]
            say(f"  {done.seconds:6.1f} s  push {name}: {sent:,} bytes sent, {there:,} there")
    for name in names:
        done = stack.run("load", name, "--into", "docker", env=docker26.env)
        say(f"  {done.seconds:6.1f} s  load {name} into Docker 26.1")


def test_layers_from_a_registry(stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A machine that has nothing, beside one that has a registry with the layers. Goal: 20 s."""
    say = Printer(capsys, "`reprobuild image`, nothing here, CUDA 12.1")
    stack.image()
    times: dict[str, list[float]] = defaultdict(list)
    with serve_registry(tmp_path / "registry") as host:
        stack.run("push", NAME, f"{host}/team/torch:1", "--record-layers")
        for _ in range(3):
            for title, options in (
                ("as usual", []),
                ("--layers-from", ["--layers-from", f"{host}/team/torch"]),
            ):
                shutil.rmtree(stack.home.root)
                done = stack.image(*options)
                times[title].append(done.seconds)
                for phase in done.phases:
                    say(f"  {phase.seconds:6.1f} s  {title}: {phase.title}")
    say.series(times)
