"""The self-test of an untouched CPU image passes twenty times in a row, on an idle and on a busy machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprobuild.host.home import Home
from reprobuild.render.own_files import selftest_files
from reprobuild.selftest.run import run_selftest
from support.altered import AlteredImage
from support.bench import Bench

pytest_plugins = ["support.shared"]


@pytest.fixture
def image(bench: Bench, digest: str, tmp_path: Path) -> AlteredImage:
    return AlteredImage(Home(bench.home), digest, tmp_path)


@pytest.fixture
def load() -> Iterator[None]:
    """Keep every core busy, with twice as many processes as there are cores."""
    spin = [sys.executable, "-c", "while True: sum(range(10**6))"]
    busy = [subprocess.Popen(spin) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_the_clean_image_passes_twenty_times(image: AlteredImage) -> None:
    _twenty(image)


@pytest.mark.usefixtures("load")
def test_the_clean_image_passes_twenty_times_under_load(image: AlteredImage) -> None:
    _twenty(image)


def _twenty(image: AlteredImage) -> None:
    seconds, fingerprints = [], set()
    for _ in range(20):
        report = run_selftest(image, program=selftest_files(), gpu="off")
        assert report.failures() == []
        seconds.append(report.seconds)
        fingerprints.add(tuple(check.fingerprint for check in report.checks))
    sys.stdout.write(f"\n20 runs: {min(seconds):.1f} to {max(seconds):.1f} s\n")
    assert len(fingerprints) == 1
