"""What a machine is found to have, with a stand-in for nvidia-smi that prints what the real one does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reprobuild.engines.cdi import GpuAccess
from reprobuild.errors import FetchError, HostError
from reprobuild.host import process
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.sandbox import Bind, Device
from reprobuild.pipeline import steps
from reprobuild.pipeline.preflight import doctor
from reprobuild.pipeline.preflight.doctor import examine
from reprobuild.pipeline.preflight.image_needs import needs_of
from reprobuild.pipeline.preflight.nvidia_smi import Card, Driver
from reprobuild.pipeline.steps import _check_gpus
from reprobuild.selftest.run import Gpu
from support.hosts import quiet_host
from support.locks import LOCK
from support.nvidia_smi import LIBCUDA, NODE, NODES

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.nvidia_smi"]


@pytest.mark.parametrize(
    ("status", "said", "good"),
    [
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", False),
        (18, "Failed to initialize NVML: Driver/library version mismatch", False),
        (6, "No devices were found", False),
        (15, "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.", None),
        (255, "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error", None),
    ],
)
def test_a_driver_that_runs_no_program_is_told_before_the_download(
    smi: Path, tmp_path: Path, status: int, said: str, good: bool | None
) -> None:
    smi.write_text(f'#!/bin/sh\necho "{said}"\nexit {status}\n')
    found = {each.name: each for each in doctor.examine_gpus(None)}
    assert found["driver"].good is good
    assert said in found["driver"].text
    assert found["GPU"].good is None
    assert ("nvidia-smi cannot ask it" in found["GPU"].text) is (good is None)
    if good is False:
        with pytest.raises(HostError, match=rf"--gpu require: nvidia-smi: nvidia-smi exited with {status}: "):
            _check_gpus(LOCK, "require", Host(Home(tmp_path), Console()))


LOST = Card("[GPU is lost]", "[GPU is lost]", "nvidia-smi says [GPU is lost] of it")
OLD, NEW, OTHER = Card("NVIDIA GeForce GT 710", "3.5"), Card("NVIDIA A100", "8.0"), Card("NVIDIA L4", "8.9")
PCI = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("gpus", "environ", "good", "says"),
    [
        ((OLD, NEW), {}, None, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ((OLD, NEW), {}, None, "NVIDIA A100 (compute capability 8.0); NVIDIA GeForce GT 710 has compute"),
        ((OLD, NEW), PCI, False, "CUDA counts this GPU first; NVIDIA A100 (compute capability 8.0)"),
        ((NEW, OLD), PCI, True, "NVIDIA GeForce GT 710 has compute capability 3.5, but"),
        ((OLD, NEW), {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-0"}, True, "A100"),
        ((OLD, NEW), {"CUDA_VISIBLE_DEVICES": "GPU-0,GPU-1"}, False, "CUDA counts this GPU first"),
        ((NEW, OTHER), {}, True, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ((OLD, NEW), {"CUDA_VISIBLE_DEVICES": "0"}, None, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ((OLD, NEW), {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, False, "GT 710"),
        ((OLD, NEW), {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, True, "A100"),
        ((NEW, OTHER), {"CUDA_VISIBLE_DEVICES": "0"}, True, "set CUDA_DEVICE_ORDER=PCI_BUS_ID"),
        ((NEW, NEW), {"CUDA_VISIBLE_DEVICES": "0"}, True, "A100"),
        (
            (NEW, NEW),
            {"CUDA_VISIBLE_DEVICES": "GPU-9"},
            False,
            "CUDA_VISIBLE_DEVICES is 'GPU-9', the UUID of no",
        ),
        ((NEW, NEW), {"NVIDIA_VISIBLE_DEVICES": "GPU-9"}, False, "NVIDIA_VISIBLE_DEVICES is 'GPU-9', the"),
        ((LOST,), {}, False, "nvidia-smi says [GPU is lost] of it"),
        ((LOST, NEW), {}, None, "[GPU is lost]"),
        ((LOST, OLD), {}, False, "only has code for"),
        ((), {}, None, "nvidia-smi lists none"),
    ],
)
def test_the_gpus_that_the_caller_s_variables_choose(
    smi: Path,
    monkeypatch: pytest.MonkeyPatch,
    gpus: tuple[Card, ...],
    environ: dict[str, str],
    good: bool | None,
    says: str,
) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(doctor, "driver", lambda: Driver("550.54.14", "12.4", gpus))
    smi.write_text("#!/bin/sh\n" + "".join(f"echo GPU-{number}a\n" for number, _ in enumerate(gpus)))
    needs = needs_of(replace(LOCK, gpu_targets=("sm_80",)))
    found = doctor.examine_gpus(needs)[0]
    assert (found.name, found.good) == ("GPU", good)
    assert says in found.text
    without = doctor.examine_gpus(None)[0]
    assert without.good in (good, True, None)


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        (
            GpuAccess(devices=[Device(path="/dev/nvidia5", source=Path("/nowhere/nvidia5"))]),
            "/nowhere/nvidia5, ",
        ),
        (GpuAccess(devices=[Device(path="nvidia0", source=Path("nvidia0"))]), "nvidia0, "),
        (
            GpuAccess(devices=[Device(path="/dev/nvidia0", source=Path("/etc/hostname"))]),
            "/etc/hostname, which the CDI file for nvidia.com/gpu names as a device node, is not one",
        ),
        (
            GpuAccess(devices=[NODE], binds=[Bind(source=Path("/nowhere/libcuda.so.1"), destination="/x")]),
            "/nowh",
        ),
        (
            GpuAccess(devices=[NODE], hooks={"createContainer": [{"path": "/nowhere/nvidia-cdi-hook"}]}),
            "/nowh",
        ),
    ],
    ids=["node", "relative", "file", "library", "hook"],
)
def test_a_cdi_file_that_is_out_of_date_is_told_before_the_download(
    smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, access: GpuAccess, reason: str
) -> None:
    """As after an update of the driver, which takes away the libraries that the file names."""
    monkeypatch.setattr(doctor, "gpu_access", lambda: access)
    (found,) = doctor.examine_gpus(None)
    assert (found.good, found.text.startswith(reason)) == (False, True)
    assert "nvidia-ctk cdi generate" in found.hint
    with pytest.raises(HostError, match="--gpu require: "):
        _check_gpus(LOCK, "require", Host(Home(tmp_path), Console()))


def test_what_a_cdi_file_may_lack_is_not_good(smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for asks in (True, False):
        monkeypatch.setattr(doctor, "gpu_access", lambda: GpuAccess(devices=NODES))
        found = doctor.examine_gpus(None)[0]
        assert found.good is None
        assert "mounts no libcuda.so.1" in found.text
        monkeypatch.setattr(doctor, "gpu_access", lambda: GpuAccess(devices=NODES, binds=[LIBCUDA]))
        assert doctor.examine_gpus(None)[0].good, asks
        monkeypatch.setattr(doctor, "driver", lambda: "nvidia-smi is not installed")


def test_a_broken_cdi_file_is_one_finding_among_others(
    smi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> GpuAccess:
        raise HostError("/etc/cdi/nvidia.yaml: not a valid CDI specification", hint="regenerate it")

    monkeypatch.setattr(doctor, "gpu_access", broken)
    with pytest.raises(HostError, match="not a valid CDI"):
        doctor.examine_gpus(None)  # an image is not begun
    (*others, found) = examine(None, Host(Home(tmp_path), Console(quiet=True)))
    assert others
    assert (found.good, found.hint) == (False, "regenerate it")
    assert found.text.startswith("/etc/cdi/nvidia.yaml: ")


@pytest.mark.parametrize("gpu", ["auto", "require"])
def test_what_will_not_run_is_said_before_the_download(
    smi: Path, tmp_path: Path, gpu: Gpu, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = replace(LOCK, gpu_targets=("sm_50",))
    if gpu == "require":
        with pytest.raises(HostError, match=r"--gpu require: NVIDIA A100.* only has code for sm_50"):
            _check_gpus(lock, gpu, Host(Home(tmp_path), Console()))
    else:
        _check_gpus(lock, gpu, Host(Home(tmp_path), Console()))
        assert "sm_50; the test on the GPU will fail" in capsys.readouterr().err
    _check_gpus(lock, "off", Host(Home(tmp_path), Console()))
    assert capsys.readouterr().err == ""
    _check_gpus(LOCK, gpu, Host(Home(tmp_path), Console()))


def test_an_image_is_not_fetched_before_that_is_said(
    smi: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise FetchError("here the download begins")

    monkeypatch.setattr(steps, "check_host", lambda _: None)
    monkeypatch.setattr(steps, "fetching", stop)
    Path("pylock.a.toml").write_text(replace(LOCK, gpu_targets=("sm_50",)).dump())
    said = call("image", "pylock.a.toml")
    assert said.status == FetchError.exit_code
    assert said.err.index("sm_50; the test on the GPU will fail") < said.err.index("the download begins")


@pytest.mark.parametrize(
    ("memory", "says"), [("8X", "'8X' is not an amount of memory"), ("300M", "may take 300 MiB of memory")]
)
def test_a_limit_that_no_build_accepts(memory: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_MEMORY", memory)
    (found,) = [each for each in examine(None, quiet_host()) if each.name == "limits"]
    assert (found.good, says in found.text) == (False, True)
    assert found.hint


# --- An image, before it is pulled ---


@pytest.mark.parametrize(
    ("missing", "package"), [("pivot_root", "util-linux"), ("setpriv", "util-linux"), ("umount", "mount")]
)
def test_a_program_of_the_sandbox_that_is_missing(
    missing: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    which = process.which
    monkeypatch.setattr(process, "which", lambda program: None if program == missing else which(program))
    (found,) = [each for each in examine(None, quiet_host()) if each.name == "sandbox"]
    assert found.good is False
    assert found.text.startswith(f"{missing} is not installed; it is needed to keep programs")
    assert found.hint == f"apt-get install -y {package}"
