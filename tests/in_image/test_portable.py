"""The portable profile gives equal bits on processors of several kinds, but for what the documentation names.

The kinds are this machine's processor and those that QEMU emulates, which have AVX2 and no AVX-512, and whose
approximate instructions are of QEMU's own kind.
"""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path

import pytest
from torch_python import image_environment, make_venv

from conftest import needs

BATTERY = Path(__file__).with_name("portable_battery.py")
PAGE = Path(__file__).parents[2] / "docs" / "self-test.md"

# MKL's vector mathematics begins these with an instruction that approximates, each maker in its own way, and
# no variable of torch or MKL turns it off.
NOT_COVERED = {
    *(f"torch.{name}" for name in ("sqrt", "atan", "acos", "asin", "cdist")),
    "torch.sqrt float64",
    "torch.tan float64",
    "torch.atan float64",
    "torch.log float64",  # as log2, few values: 5 of 200,000, by the last bit
    "torch.log2",
    "training with AdamW",
    "training with RMSprop",
}

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the profile is for x86_64"),
]


def results(python: Path, profile: str, cpu: str | None) -> dict[str, str]:
    """Return the battery's digests on a processor that QEMU has by this name, or on this machine's."""
    emulator = ["qemu-x86_64", "-cpu", cpu] if cpu else []
    command = [*emulator, str(python), str(BATTERY)]
    done = subprocess.run(
        command, env=image_environment(profile), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_equal_bits_on_processors_of_two_makers(tmp_path: Path) -> None:
    needs("qemu-x86_64")
    python = make_venv(tmp_path / "venv", torch=True)
    here = results(python, "portable", None)
    intel, amd = (results(python, "portable", cpu) for cpu in ("Haswell", "EPYC"))
    assert len(here) > 150
    assert {name for name in here if not here[name] == intel[name] == amd[name]} <= NOT_COVERED


def test_the_battery_tells_processors_apart_without_the_profile(tmp_path: Path) -> None:
    """The control."""
    needs("qemu-x86_64")
    if "avx512f" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this processor has no AVX-512, so that the emulated one need not differ from it")
    python = make_venv(tmp_path / "venv", torch=True)
    here, intel = results(python, "strict", None), results(python, "strict", "Haswell")
    assert {name for name in here if here[name] != intel[name]} - NOT_COVERED


def test_what_is_not_covered_is_documented() -> None:
    text = PAGE.read_text()
    for name in sorted(NOT_COVERED):
        short = name.removeprefix("training with ").removeprefix("torch.").split()[0]
        assert f"`{short}`" in text, short
