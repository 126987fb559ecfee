"""The commands on images, with an image without layers; test_cli_real.py has the real one."""

from __future__ import annotations

import json
import re
import tarfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest import GOLDEN
from reprobuild import pipeline
from reprobuild.cli import image, images, run_options
from reprobuild.engines.embedded import OciEngine
from reprobuild.engines.gpu import GpuAccess
from reprobuild.engines.protocols import RunOptions
from reprobuild.fetch.arrivals import Arrivals
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.host.limits import Limits
from reprobuild.host.sandbox import Bind
from reprobuild.lock.model import Lock
from reprobuild.oci.documents import documents
from reprobuild.oci.store import ImageStore
from reprobuild.render.image_config import image_config
from support.reports import FAILED, Script, a_check, a_report, printing

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands"]

LOCK = GOLDEN / "pylock.torch-cu121.toml"
NAME = "reprobuild/torch:2.4.1-cu121-py311"
CHECKS = [
    a_check(name=f"check-number-{number}") for number in range(40)
] + [a_check(name="control", status="inconclusive", reason="one core is not enough to see it")]  # fmt: skip


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand in for fetch, build and container; call it with the code that the container runs."""
    monkeypatch.setattr(pipeline, "check_host", lambda _lock: None)
    monkeypatch.setattr(OciEngine, "check", lambda _, gpu: None)
    monkeypatch.setattr(pipeline, "fetching", lambda *_: nullcontext(Arrivals()))

    def build(engine: OciEngine, lock: Lock, context: object, arrivals: object) -> str:
        return engine.images.add(documents(lock, image_config(lock), []))

    def runs(code: str) -> None:
        monkeypatch.setattr(OciEngine, "runner", lambda _, digest: Script(code, digest=digest))

    monkeypatch.setattr(OciEngine, "build", build)
    runs(printing(a_report(*CHECKS)))
    return runs


@pytest.fixture
def digest(container: Any, call: Call) -> str:
    """The digest of an image that is there."""
    found: str = json.loads(call("image", str(LOCK), "--json").out)["digest"]
    return found


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


def test_a_failed_self_test_is_status_9_and_no_name(container: Any, call: Call) -> None:
    container(printing(a_report(FAILED), status=1))
    said = call("image", str(LOCK), "--json")
    assert (said.status, json.loads(said.out)["error"]["kind"]) == (9, "SelfTestError")
    assert "conv2d: two processes differ" in said.err
    assert "output: expected cccc" in said.err
    assert "hint: the candidate stays without a name" in said.err
    [image] = json.loads(call("images", "--json").out)
    assert image["names"] == []
    assert "<candidate>" in call("images").out
    assert call("run", NAME, "true").status == 10


def test_a_bad_name_is_refused_before_anything_is_done(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "make_image", lambda *_: pytest.fail("made"))
    said = call("image", str(LOCK), "--tag", "Team/X")
    assert (said.status, said.out) == (10, "")
    assert "as in team/torch:2.4.1-cu121" in said.err


def test_images_are_listed(digest: str, call: Call) -> None:
    said = call("images")
    heading, line = said.out.splitlines()
    assert heading.split() == ["NAME", "DIGEST", "SIZE", "UNPACKED", "PYTORCH", "CUDA"]
    assert line.split()[:2] == [NAME, digest[7:19]]
    assert line.split()[-2:] == ["2.4.1", "12.1.105"]


def test_what_is_unpacked_is_counted(digest: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_an_image_that_is_not_there(command: list[str], digest: str, call: Call) -> None:
    said = call(*command)
    assert (said.status, said.out) == (10, "")
    assert said.err == f"reprobuild: no image 'x'\n  hint: there are: {NAME}\n"


def test_selftest_again(digest: str, container: Any, call: Call) -> None:
    assert call("selftest", NAME).out.startswith(f"image    {NAME}\ntested   passed")
    report = json.loads(call("selftest", digest[7:14], "--json").out)
    assert report["image"] == digest
    container(printing(a_report(FAILED), status=1))
    said = call("selftest", digest, "--json")
    assert said.status == 9
    assert json.loads(said.out)["verdict"] == "failed"
    assert f"{digest} failed its self-test (conv2d)" in said.err


def test_export_writes_an_archive_or_nothing(digest: str, call: Call, folder: Path) -> None:
    said = call("export", NAME, "torch.tar")
    assert said.status == 0
    assert said.out.startswith(f"torch.tar: {NAME}, {digest}, ")
    with tarfile.open("torch.tar") as tar:
        assert "oci-layout" in tar.getnames()
    first = Path("torch.tar").read_bytes()
    call("export", digest, "again.tar")
    assert Path("again.tar").read_bytes() == first
    said = call("export", NAME, "torch.tar", "--format", "squashfs", "--compression", "gzip")
    assert (said.status, said.out) == (2, "")
    assert "--compression is of the layers of an OCI archive" in said.err
    said = call("export", NAME, "no/such/folder.tar")
    assert (said.status, said.out) == (11, "")
    assert sorted(path.name for path in folder.iterdir()) == ["again.tar", "torch.tar"]


def test_remove_and_clean(digest: str, call: Call) -> None:
    assert call("remove", NAME).out == f"{NAME}: removed ({digest[:19]})\n"
    assert call("images", "--json").out == "[]\n"
    facts = json.loads(call("clean", "--json").out)
    assert facts["freed"] > 0
    assert facts["home"].endswith("/reprobuild")
    assert call("clean", "--all").out.startswith("0 B freed in ")


def test_clean_says_what_of_it_was_unpacked(digest: str, call: Call) -> None:
    root = Home.from_environment().folder("roots") / ("0" * 64)
    root.mkdir()
    (root / "x").write_bytes(bytes(5_000_000))
    said = call("clean").out
    assert said.endswith(", 5.0 MB of it layers unpacked for running\n")
    assert not root.exists()


# --- run ---


@pytest.fixture
def ran(digest: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the engine was told to run; it ends with status 5."""
    calls: list[Any] = []

    def run(engine: OciEngine, reference: str, argv: tuple[str, ...], settings: RunOptions) -> int:
        calls.append((reference, argv, settings))
        return 5

    monkeypatch.setattr(OciEngine, "run", run)
    monkeypatch.setattr(run_options, "gpu_access", lambda: "no NVIDIA GPU on this machine")
    return calls


def test_run_hands_on_what_it_is_told_and_the_status(
    ran: list[Any], call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE", "yes")
    options = [
        "-e",
        "A=b=c",
        "-e",
        "HERE",
        "-e",
        "NOWHERE",
        "-v",
        f"{folder}:/work:ro",
        "-v",
        ".:/out",
        "-w",
        "/work",
        "--memory",
        "8G",
        "--pids-limit",
        "500",
        "--no-network",
    ]
    assert call("run", *options, NAME, "--", "python3", "train.py", "-v", "--lr", "1").status == 5
    [(reference, argv, settings)] = ran
    assert (reference, argv) == (NAME, ("python3", "train.py", "-v", "--lr", "1"))
    assert settings == RunOptions(
        env={"A": "b=c", "HERE": "yes"},
        binds=[
            Bind(source=folder, destination="/work", writable=False),
            Bind(source=folder, destination="/out", writable=True),
        ],
        network=False,
        gpu=None,
        workdir="/work",
        user="0:0",
        limits=Limits(memory=8 << 30, processes=500),
    )


@pytest.mark.parametrize("argv", [["--", "sh", "-c", "--"], ["sh", "-c", "--"]])
def test_the_dashes_before_the_command_may_be_left_out(argv: list[str], ran: list[Any], call: Call) -> None:
    call("run", NAME, *argv)
    assert ran[0][1] == ("sh", "-c", "--")


def test_a_command_that_was_killed(digest: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OciEngine, "run", lambda *_, **__: -9)
    assert call("run", NAME, "true").status == 137


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-e", "=x", NAME], "NAME=VALUE"),
        (["-v", "here", NAME], "SRC:DST"),
        (["-v", ".:relative", NAME], "DST an absolute path"),
        (["-v", ".:/x:yes", NAME], "SRC:DST:ro"),
        (["-it", "--rm", NAME], "not a terminal; omit -t"),
        (["--user", "a:b:c", NAME], "expected USER[:GROUP]"),
        (["-v", "nowhere:/x", NAME], "nowhere: no such file or folder"),
        ([NAME, "-w", "/"], "-w is after the image; options of `run` come before it"),
    ],
)
def test_bad_options_of_run(argv: list[str], words: str, ran: list[Any], call: Call) -> None:
    said = call("run", *argv)
    assert (said.status, said.out, ran) == (2, "", [])
    assert words in said.err


def test_gpus_are_handed_in_as_asked(ran: list[Any], call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    said = call("run", "--gpu", "require", NAME)
    assert (said.status, ran) == (7, [])
    assert "no NVIDIA GPU on this machine" in said.err
    access = GpuAccess(devices=[])
    monkeypatch.setattr(run_options, "gpu_access", lambda: access)
    for choice in ("auto", "require", "off"):
        call("run", "--gpu", choice, NAME)
    assert [settings.gpu for _, _, settings in ran] == [access, access, None]


def test_a_damaged_image_is_listed_and_can_be_removed(call: Call, digest: str) -> None:
    ImageStore(Host(Home.from_environment(), Console(quiet=True))).blob(digest).unlink()
    said = call("images")
    assert said.status == 0
    assert re.search(rf"^{NAME} +{digest[7:19]} +damaged ", said.out, re.MULTILINE)
    assert digest in said.err
    listed = json.loads(call("images", "--json").out)
    assert [(each["names"], each["digest"], "missing" in each["damaged"]) for each in listed] == [
        ([NAME], digest, True)
    ]
    assert call("remove", NAME).status == 0
    assert json.loads(call("images", "--json").out) == []
