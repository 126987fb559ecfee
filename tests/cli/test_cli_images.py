"""The commands on images, with an image without layers; real/test_real_cli.py has the real one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.cli import images
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.store import ImageStore
from support.reports import FAILED, a_report, printing
from support.small_images import CHECKS, LOCK, NAME

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands", "support.small_images"]


def test_the_table_fits_80_columns_and_a_digest_stays_whole(container: Any, call: Call) -> None:
    said = call("image", str(LOCK))
    assert said.status == 0
    lines = said.out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == f"image    {NAME}"
    assert re.fullmatch(r"digest   sha256:[0-9a-f]{64}", lines[1])
    assert re.fullmatch(r"lock     sha256:[0-9a-f]{64}", lines[2])
    expected = ["size     ", "PyTorch  2.4.1", "CUDA     12.1.105", "cuDNN    9.1.0.70", "NCCL     2.20.5"]
    assert [line[: len(start)] for line, start in zip(lines[3:], expected, strict=False)] == expected
    text = " ".join(said.out.split())
    assert "tested passed in 6.5 s on Some CPU, AVX2, 1 thread" in text
    assert "checked on CPU: check-number-0, check-number-1" in text
    assert "unsure control: one core is not enough to see it" in text
    assert "GPU not tested: " in text
    assert "testing sha256:" in said.err


def test_json_is_the_whole_story(container: Any, call: Call) -> None:
    made = json.loads(call("image", str(LOCK), "--tag", "team/x:1", "--json").out)
    assert (made["name"], made["names"]) == ("team/x:1", ["team/x:1"])
    assert made["labels"]["dev.reprobuild.cudnn"] == "9.1.0.70"
    assert made["report"]["verdict"] == "passed"
    assert len(made["report"]["checks"]) == len(CHECKS)


def test_images_are_listed(small_digest: str, call: Call) -> None:
    said = call("images")
    heading, line = said.out.splitlines()
    assert heading.split() == ["NAME", "DIGEST", "SIZE", "UNPACKED", "PYTORCH", "CUDA"]
    assert line.split()[:2] == [NAME, small_digest[7:19]]
    assert line.split()[-2:] == ["2.4.1", "12.1.105"]


def test_what_is_unpacked_is_counted(small_digest: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    [facts] = json.loads(call("images", "--json").out)
    assert facts["unpacked"] == 0
    sizes = {"sha256:" + "a" * 64: 10**9, "sha256:" + "b" * 64: 2 * 10**9}
    layers = [(Path("x"), "sha256:" + "a" * 64), (Path("x"), "sha256:" + "c" * 64)]
    monkeypatch.setattr(images, "unpacked_sizes", lambda _: sizes)
    monkeypatch.setattr(ImageStore, "layers", lambda *_: layers)
    [facts] = json.loads(call("images", "--json").out)
    assert facts["unpacked"] == 10**9
    said = call("images")
    assert "  1.0 GB  " in said.out
    assert said.err == "· layers unpacked for running take 3.0 GB, shared by images; at most 30.0 GB stay\n"


def test_no_images_are_told_on_stderr(call: Call) -> None:
    said = call("images")
    assert (said.status, said.out) == (0, "")
    assert "`reprobuild image --cuda 12.1` makes one" in said.err
    assert call("images", "--json").out == "[]\n"


@pytest.mark.parametrize("command", [["run", "x"], ["selftest", "x"], ["export", "x", "y"], ["remove", "x"]])
def test_an_image_that_is_not_there(command: list[str], small_digest: str, call: Call) -> None:
    said = call(*command)
    assert (said.status, said.out) == (10, "")
    assert said.err == f"reprobuild: no image 'x'\n  hint: there are: {NAME}\n"


def test_selftest_again(small_digest: str, container: Any, call: Call) -> None:
    assert call("selftest", NAME).out.startswith(f"image    {NAME}\ntested   passed")
    report = json.loads(call("selftest", small_digest[7:14], "--json").out)
    assert report["image"] == small_digest
    container(printing(a_report(FAILED), status=1))
    said = call("selftest", small_digest, "--json")
    assert said.status == 9
    assert json.loads(said.out)["verdict"] == "failed"
    assert f"{small_digest} failed its self-test (conv2d)" in said.err


# --- run ---


def test_a_damaged_image_is_listed_and_can_be_removed(call: Call, small_digest: str) -> None:
    ImageStore(Host(Home.from_environment(), Console(quiet=True))).blob(small_digest).unlink()
    said = call("images")
    assert said.status == 0
    assert re.search(rf"^{NAME} +{small_digest[7:19]} +damaged ", said.out, re.MULTILINE)
    assert small_digest in said.err
    listed = json.loads(call("images", "--json").out)
    assert [(each["names"], each["digest"], "missing" in each["damaged"]) for each in listed] == [
        ([NAME], small_digest, True)
    ]
    assert call("remove", NAME).status == 0
    assert json.loads(call("images", "--json").out) == []
