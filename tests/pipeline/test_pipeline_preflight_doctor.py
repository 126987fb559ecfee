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
from reprobuild.pipeline.preflight.doctor import Driver, examine
from reprobuild.pipeline.steps import _check_gpus
from reprobuild.selftest.run import Gpu
from support.hosts import quiet_host
from support.locks import LOCK
from support.nvidia_smi import NODE

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.nvidia_smi"]


def test_the_driver_says_what_it_is(smi: Path) -> None:
    a100 = ("NVIDIA A100-SXM4-40GB", "8.0")
    assert doctor.driver() == Driver("550.54.14", "12.4", (a100, a100))


@pytest.mark.parametrize(
    ("text", "says"), [("#!/bin/sh\nexit 9\n", "exited with 9"), ("#!/bin/sh\n", "printed no driver")]
)
def test_a_driver_that_is_broken(smi: Path, text: str, says: str) -> None:
    smi.write_text(text)
    found = doctor.driver()
    assert isinstance(found, str)
    assert says in found


@pytest.mark.parametrize(
    ("head", "known"),
    [
        # Since driver 610 the driver has another name, and so has its CUDA.
        ("NVIDIA-SMI 610.43.02  KMD Version: 610.43.02  CUDA UMD Version: 13.3", ("610.43.02", "13.3")),
        ("NVIDIA-SMI 560.28.03  Driver Version: 560.81  CUDA Version: 12.6", ("560.81", "12.6")),  # WSL
        ("NVIDIA-SMI 540.2.0  Driver Version: N/A  CUDA Version: 12.2", None),  # Jetson
        ("NVIDIA-SMI 535.161.07  Driver Version: 535.161.07  CUDA Version: N/A", None),
        ("NVIDIA-SMI 515.65.01  Driver Version: 515.65.01  CUDA Version: ERR!", None),
        ("NVIDIA-SMI 331.62  Driver Version: 331.62  |", None),
    ],
)
def test_drivers_of_other_ages_and_machines(smi: Path, head: str, known: tuple[str, str] | None) -> None:
    smi.write_text(f"#!/bin/sh\ncase $* in *query*) echo 'NVIDIA B200, 10.0';; *) echo '| {head} |';; esac\n")
    found = doctor.driver()
    if known is None:
        assert found == "nvidia-smi printed no driver version or no CUDA version"
    else:
        assert found == Driver(*known, (("NVIDIA B200", "10.0"),))


def test_an_old_driver_that_knows_no_compute_capability_is_still_too_old(smi: Path, tmp_path: Path) -> None:
    """As that of driver 470, which refuses the whole query (huggingface/candle#733)."""
    smi.write_text(
        """#!/bin/sh
case $* in
*compute_cap*) echo 'Field "compute_cap" is not a valid field to query.'; exit 2;;
*query*) echo "Tesla V100-SXM2-32GB";;
*) echo "| NVIDIA-SMI 470.182.03  Driver Version: 470.182.03  CUDA Version: 11.4 |";;
esac
"""
    )
    assert doctor.driver() == Driver("470.182.03", "11.4", (("Tesla V100-SXM2-32GB", "[N/A]"),))
    with pytest.raises(HostError, match=r"driver 470\.182\.03 supports CUDA up to 11\.4"):
        _check_gpus(LOCK, "require", Host(Home(tmp_path), Console()))


@pytest.mark.parametrize("knows", ["name,compute_cap", "name"])
def test_a_card_whose_inforom_is_corrupt_is_described_all_the_same(smi: Path, knows: str) -> None:
    """All is printed, then a warning, and the status is 14 (microsoft/pai#3756)."""
    smi.write_text(
        f"""#!/bin/sh
case $* in
*"query-gpu={knows} "*) echo "Quadro P4000{", 6.1" * ("," in knows)}";;
*query*) exit 2;;
*) echo "| NVIDIA-SMI 535.54.03  Driver Version: 535.54.03  CUDA Version: 12.2 |";;
esac
echo "WARNING: infoROM is corrupted at gpu 0000:B3:00.0"
exit 14
"""
    )
    found = doctor.driver()
    assert found == Driver("535.54.03", "12.2", (("Quadro P4000", "6.1" if "," in knows else "[N/A]"),))


@pytest.mark.parametrize(
    ("status", "said", "good"),
    [
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", False),
        (18, "Failed to initialize NVML: Driver/library version mismatch", False),
        (6, "No devices were found", False),
        (15, "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.", None),
    ],
)
def test_a_driver_that_runs_no_program_is_told_before_the_download(
    smi: Path, tmp_path: Path, status: int, said: str, good: bool | None
) -> None:
    smi.write_text(f'#!/bin/sh\necho "{said}"\nexit {status}\n')
    found = {each.name: each for each in doctor.examine_gpus(None)}
    assert found["driver"].good is good
    assert said in found["driver"].text
    if good is False:
        with pytest.raises(HostError, match=rf"--gpu require: nvidia-smi: nvidia-smi exited with {status}: "):
            _check_gpus(LOCK, "require", Host(Home(tmp_path), Console()))


@pytest.mark.parametrize(
    ("access", "reason"),
    [
        (
            GpuAccess(devices=[Device(path="/dev/nvidia5", source=Path("/nowhere/nvidia5"))]),
            "/nowhere/nvidia5, ",
        ),
        (GpuAccess(devices=[Device(path="nvidia0", source=Path("nvidia0"))]), "nvidia0, "),
        (
            GpuAccess(devices=[NODE], binds=[Bind(source=Path("/nowhere/libcuda.so.1"), destination="/x")]),
            "/nowh",
        ),
        (
            GpuAccess(devices=[NODE], hooks={"createContainer": [{"path": "/nowhere/nvidia-cdi-hook"}]}),
            "/nowh",
        ),
    ],
    ids=["node", "relative", "library", "hook"],
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
