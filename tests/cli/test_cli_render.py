"""``render --devcontainer``: where editors look, the image as it was pushed, and nobody's file replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import GOLDEN
from reprobuild.pipeline.workspace import read_lock

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

from typing import TYPE_CHECKING

from reprobuild.errors import ImageError, RequestError, StorageError
from reprobuild.host.home import Home
from reprobuild.oci.registry.client import Target
from reprobuild.oci.registry.pushed import remember_push

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands"]

LOCK = GOLDEN / "pylock.torch-cu121.toml"
FILE = Path("work/.devcontainer/devcontainer.json")
DIGEST = "sha256:" + 64 * "a"
RENDER = ("render", str(LOCK), "-o", "work", "--devcontainer")


def test_it_lies_where_editors_look_and_names_the_image_of_the_last_push(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = call(*RENDER)
    assert (said.status, "was not pushed from here" in said.err) == (ImageError.exit_code, True)
    home = Home.from_environment()
    remember_push(home, read_lock(LOCK).digest, Target.parse("registry.example/team/torch:1"), DIGEST)
    said = call(*RENDER, "--json")
    assert json.loads(said.out)["files"] == [".devcontainer/devcontainer.json"]
    assert json.loads(FILE.read_bytes())["image"] == f"registry.example/team/torch@{DIGEST}"


def test_a_file_that_differs_is_replaced_by_force_only(call: Call, folder: Path) -> None:
    command = (*RENDER, f"registry.example/team/torch@{DIGEST}")
    assert call(*command).status == call(*command).status == 0
    FILE.write_text("{ mine }")
    said = call(*command)
    assert (said.status, "exists and differs" in said.err) == (StorageError.exit_code, True)
    assert FILE.read_text() == "{ mine }"
    assert call(*command, "--force").status == 0
    assert "mine" not in FILE.read_text()


def test_certificates_are_copied_beside_it(call: Call, folder: Path) -> None:
    bundle = Path("company.pem")
    bundle.write_text("no certificate\n")
    command = (*RENDER, f"registry.example/team/torch@{DIGEST}", "--ca", str(bundle))
    assert call(*command).status == RequestError.exit_code
    bundle.write_text("-----BEGIN CERTIFICATE-----\n…\n")
    assert call(*command).status == 0
    assert FILE.with_name("ca-certificates.crt").read_bytes() == bundle.read_bytes()
    trusted = json.loads(FILE.read_bytes())["containerEnv"]["SSL_CERT_FILE"]
    assert trusted == "${containerWorkspaceFolder}/.devcontainer/ca-certificates.crt"


pytest_plugins = ["support.commands", "support.family"]


def test_render_writes_the_text_of_a_lock(call: Call, folder: Path) -> None:
    lock = folder / "pylock.x.toml"
    lock.write_bytes((GOLDEN / "pylock.torch-cu121.toml").read_bytes())
    said = call("render", str(lock), "-o", "out", "--no-artifacts", "--json")
    assert said.status == 0
    facts = json.loads(said.out)
    written = sorted(str(p.relative_to("out")) for p in Path("out").rglob("*") if p.is_file())
    assert facts["files"] == written
    assert Path("out/Dockerfile").read_text().startswith("# torch-cu121, rendered by reprobuild")
    said = call("render", str(lock), "-o", "out", "--no-artifacts")
    assert said.out.startswith("out/Dockerfile and ")


def test_render_self_contained_takes_no_second_form(call: Call, folder: Path) -> None:
    lock = folder / "pylock.x.toml"
    lock.write_bytes((GOLDEN / "pylock.torch-cu121.toml").read_bytes())
    said = call("render", str(lock), "-o", "out", "--nodes", "3")
    assert (said.status, "--nodes is for --kubernetes" in said.err) == (2, True)
    said = call("render", str(lock), "-o", "out", "--self-contained", "--no-artifacts")
    assert said.status == 2
    assert "--self-contained writes no artifacts" in said.err
