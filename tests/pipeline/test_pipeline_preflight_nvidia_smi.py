"""What nvidia-smi says, with a stand-in that prints what the real one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import HostError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.pipeline.preflight.nvidia_smi import Driver, chosen, driver, has_fault
from reprobuild.pipeline.steps import _check_gpus
from support.locks import LOCK

pytest_plugins = ["support.nvidia_smi"]


def test_the_driver_says_what_it_is(smi: Path) -> None:
    a100 = ("NVIDIA A100-SXM4-40GB", "8.0")
    assert driver() == Driver("550.54.14", "12.4", (a100, a100))


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
    assert driver() == Driver("470.182.03", "11.4", (("Tesla V100-SXM2-32GB", "[N/A]"),))
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
    assert found == Driver("535.54.03", "12.2", (("Quadro P4000", "6.1" if "," in knows else "[N/A]"),))


HEAD = "| NVIDIA-SMI 550.54.14  Driver Version: 550.54.14  CUDA Version: 12.4 |"
OLD, NEW = ("NVIDIA GeForce GT 710", "3.5"), ("NVIDIA A100-SXM4-40GB", "8.0")


def an_smi(smi: Path, *gpus: tuple[str, str], uuids: tuple[str, ...] = (), status: int = 0) -> None:
    rows = "\n".join(map(", ".join, gpus))
    texts = {"*query-gpu=uuid*": "\n".join(uuids), "*query-gpu*": rows, "*": HEAD}
    cases = "".join(f"{case}) echo '{text}';;\n" for case, text in texts.items())
    smi.write_text(f"#!/bin/sh\ncase $* in\n{cases}esac\nexit {status}\n")


@pytest.mark.parametrize(
    ("visible", "order", "gpus", "known"),
    [
        (None, None, [OLD, NEW], True),
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
    smi: Path, visible: str | None, order: str | None, gpus: list[tuple[str, str]], known: bool
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
    assert has_fault((text, "8.0"))
    assert has_fault(("NVIDIA A100", text))
    assert not has_fault(("NVIDIA A100", "[N/A]"))


def test_one_gpu_that_is_lost_leaves_the_others(smi: Path) -> None:
    """The status is 15 then, after all has been printed."""
    lost = ("[GPU is lost]", "[GPU is lost]")
    an_smi(smi, NEW, lost, status=15)
    assert driver() == Driver("550.54.14", "12.4", (NEW, lost))
    smi.write_text("#!/bin/sh\necho 'Unable to determine the device handle: GPU is lost.'\nexit 15\n")
    found = driver()
    assert isinstance(found, str)
    assert "exited with 15: Unable to determine" in found
