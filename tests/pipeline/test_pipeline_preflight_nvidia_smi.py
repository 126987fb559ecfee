"""What nvidia-smi says, with a stand-in that prints what the real one does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from reprobuild.errors import HostError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.pipeline.preflight.nvidia_smi import Card, Driver, chosen, driver
from reprobuild.pipeline.steps import _check_gpus
from support.locks import LOCK

pytest_plugins = ["support.nvidia_smi"]


def test_the_driver_says_what_it_is(smi: Path) -> None:
    a100 = Card("NVIDIA A100-SXM4-40GB", "8.0")
    assert driver() == Driver("550.54.14", "12.4", (a100, a100), (None, None))


@pytest.mark.parametrize(
    ("text", "says"), [("#!/bin/sh\nexit 9\n", "exited with 9"), ("#!/bin/sh\n", "printed no driver")]
)
def test_a_driver_that_is_broken(smi: Path, text: str, says: str) -> None:
    smi.write_text(text)
    found = driver()
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
    found = driver()
    if known is None:
        assert found == "nvidia-smi printed no driver version or no CUDA version" + (
            ": ERR!, so it could not use libcuda.so.1" if "ERR!" in head else ""
        )
    else:
        assert found == Driver(*known, (Card("NVIDIA B200", "10.0"),), (None,))


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
    assert driver() == Driver("470.182.03", "11.4", (Card("Tesla V100-SXM2-32GB", "[N/A]"),), (None,))
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
    found = driver()
    card = Card("Quadro P4000", "6.1" if "," in knows else "[N/A]")
    assert found == Driver("535.54.03", "12.2", (card,), (None,))


HEAD = "| NVIDIA-SMI 550.54.14  Driver Version: 550.54.14  CUDA Version: 12.4 |"
OLD, NEW = Card("NVIDIA GeForce GT 710", "3.5"), Card("NVIDIA A100-SXM4-40GB", "8.0")


def an_smi(
    smi: Path, *gpus: Card, uuids: Sequence[str] = (), status: int = 0, **other: Sequence[str]
) -> None:
    """``other``: what it prints for -L, and for fields of a GPU, by the beginning of their names."""
    asked = {f"{'-L' if name == 'L' else 'query-gpu=' + name}*": lines for name, lines in other.items()}
    rows = [", ".join(gpu[:2]) for gpu in gpus]
    lines = {**asked, "query-gpu=uuid*": uuids, "query-gpu=*compute_cap*": rows, "query*": [], "": [HEAD]}
    texts = {f"*{name}": "\n".join(each) for name, each in lines.items()}
    cases = "".join(f"{case}) echo '{text}';;\n" for case, text in texts.items())
    smi.write_text(f"#!/bin/sh\ncase $* in\n{cases}esac\nexit {status}\n")


@pytest.mark.parametrize(
    ("visible", "order", "gpus", "known"),
    [
        (None, None, [OLD, NEW], False),
        (None, "PCI_BUS_ID", [OLD, NEW], True),
        ("0", "PCI_BUS_ID", [OLD], True),
        ("1", "PCI_BUS_ID", [NEW], True),
        ("1,0", "PCI_BUS_ID", [NEW, OLD], True),
        ("1,7,0", "PCI_BUS_ID", [NEW], True),
        ("0", None, [OLD, NEW], False),
        ("0", "FASTEST_FIRST", [OLD, NEW], False),
        ("0", "pci", [OLD, NEW], False),
        ("GPU-1b", None, [NEW], True),
        ("GPU-1b,GPU-1a", None, [NEW, OLD], True),
        ("GPU-1", None, [], True),
        ("GPU-1b,GPU-9,GPU-1a", None, [NEW], True),
        ("GPU-9", None, [], True),
        ("MIG-GPU-1b22/0/0", None, [NEW], True),
        ("MIG-77", None, [OLD, NEW], False),
    ],
)
def test_which_gpus_a_choice_leaves(
    smi: Path, visible: str | None, order: str | None, gpus: list[Card], known: bool
) -> None:
    """CUDA counts the fastest first, and nvidia-smi by PCI bus (CUDA C++ Programming Guide)."""
    an_smi(smi, OLD, NEW, uuids=("GPU-1a11", "GPU-1b22"))
    found = driver()
    assert isinstance(found, Driver)
    names = {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": order}
    left, unsure = chosen(found, {name: value for name, value in names.items() if value is not None})
    assert [*left] == gpus
    assert (unsure == "") is known


def test_the_order_of_equal_gpus_is_no_matter(smi: Path) -> None:
    an_smi(smi, NEW, NEW)
    found = driver()
    assert isinstance(found, Driver)
    for visible in ("1", "MIG-77"):
        assert chosen(found, {"CUDA_VISIBLE_DEVICES": visible})[1] == ""


@pytest.mark.parametrize("text", ["[GPU is lost]", "[Unknown Error]", "ERR!", "[GPU requires reset]"])
def test_what_is_printed_in_the_place_of_a_fact(smi: Path, text: str) -> None:
    an_smi(smi, Card(text, "8.0"), Card("NVIDIA A100", text), Card("NVIDIA A100", "[N/A]"))
    found = driver()
    assert isinstance(found, Driver)
    assert [gpu.fault for gpu in found.gpus] == [
        *(f"nvidia-smi says {text} of it", f"nvidia-smi says {text} of NVIDIA A100", "")
    ]


A100 = Card("NVIDIA A100-SXM4-40GB", "8.0")
WITH, WITHOUT = "GPU 0: NVIDIA A100 (UUID: GPU-1a11)", "GPU 1: NVIDIA A100 (UUID: GPU-1b22)"
SLICES = [f"  MIG 3g.20gb     Device  {number}: (UUID: MIG-{number}7)" for number in (0, 1)]


def in_mig_mode(smi: Path, *listed: str, modes: Sequence[str] = ("Enabled", "Enabled")) -> Driver:
    an_smi(smi, A100, A100, uuids=("GPU-1a11", "GPU-1b22"), mig=modes, L=listed)
    found = driver()
    assert isinstance(found, Driver)
    return found


def test_a_gpu_in_mig_mode_without_mig_devices_is_not_there_for_cuda(smi: Path) -> None:
    found = in_mig_mode(smi, WITH, *SLICES, WITHOUT)
    assert found.slices == (("MIG-07", "MIG-17"), ())
    assert found.gpus[0] == A100
    assert (
        found.gpus[1].fault == f"{A100.name} is in MIG mode and has no MIG devices, so CUDA does not find it"
    )
    assert "mig -cgi" in found.gpus[1].remedy
    assert in_mig_mode(smi, WITH, WITHOUT, modes=("Disabled", "[N/A]")).gpus == (A100, A100)
    # What it lists cannot be understood: its table may say so, too.
    assert in_mig_mode(smi, "?").slices == (None, None)
    program = smi.read_text()
    smi.write_text(program.replace(HEAD, f"{HEAD}\n|  No MIG devices found  |"))
    again = driver()
    assert isinstance(again, Driver)
    assert again.slices == ((), ())


@pytest.mark.parametrize(
    ("visible", "known"),
    [
        ("MIG-07", True),
        ("MIG-1", True),
        ("MIG-GPU-1a11/3/0", True),
        ("MIG-GPU-1b22/3/0", False),
        ("MIG-", False),
        ("MIG-9", False),
        ("GPU-1b22", True),
    ],
)
def test_a_mig_device_that_there_is_or_is_not(smi: Path, visible: str, known: bool) -> None:
    found = in_mig_mode(smi, WITH, *SLICES, WITHOUT)
    assert (chosen(found, {"CUDA_VISIBLE_DEVICES": visible})[0] != []) is known
    if visible.startswith("MIG-"):
        for modes in (("Disabled", "Disabled"), ("[N/A]", "[N/A]")):
            undivided = in_mig_mode(smi, WITH, WITHOUT, modes=modes)
            assert chosen(undivided, {"CUDA_VISIBLE_DEVICES": visible}) == ([], "")


def test_a_gpu_that_its_compute_mode_forbids(smi: Path) -> None:
    an_smi(smi, A100, A100, compute_mode=("Exclusive_Process", "Prohibited"))
    found = driver()
    assert isinstance(found, Driver)
    assert found.gpus[0] == A100
    assert found.gpus[1].fault.startswith(f"the compute mode of {A100.name} is Prohibited")


def test_one_gpu_that_is_lost_leaves_the_others(smi: Path) -> None:
    """The status is 15 then, after all has been printed."""
    lost = Card(
        "[GPU is lost]", "[GPU is lost]", "nvidia-smi says [GPU is lost] of it", "restart the machine"
    )
    an_smi(smi, NEW, lost, status=15)
    assert driver() == Driver("550.54.14", "12.4", (NEW, lost), (None, None))
    smi.write_text("#!/bin/sh\necho 'Unable to determine the device handle: GPU is lost.'\nexit 15\n")
    found = driver()
    assert isinstance(found, str)
    assert "exited with 15: Unable to determine" in found
