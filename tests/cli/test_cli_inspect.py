"""``inspect``: what is in an image and who says so, here and in a registry."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprobuild.oci.registry.client import Registry
from support.browser import dom
from support.evidence import write_key

if TYPE_CHECKING:
    from support.commands import Call

pytest_plugins = ["support.commands", "support.evident"]


def test_an_image_is_shown_by_size_and_origin(image: str, call: Call) -> None:
    said = call("inspect", "team/toy:1")
    assert said.status == 0, said.err
    assert f"{image}" in said.out
    assert "unsigned: the word of whoever wrote it" in " ".join(said.out.split())
    found = json.loads(call("inspect", "team/toy:1", "--json").out)
    assert (found["digest"], found["lock"]["name"]) == (image, "torch-cu121")
    assert found["size"] == sum(layer["size"] for layer in found["layers"])
    assert {"torch", "numpy", "frames"} <= {package["name"] for package in found["packages"]}
    sizes = [package["size"] for package in found["packages"]]
    assert sizes == sorted(sizes, reverse=True)
    assert found["test"]["verdict"] == "passed"
    assert not found["test"]["signed"]
    assert [each["kind"] for each in found["evidence"]] == ["provenance", "sbom", "test-result"]
    assert found["unknown"] == []


def test_in_a_registry_no_large_layer_is_read_and_a_key_says_what_it_signed(
    image: str, call: Call, key: Path, registry: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place, public = f"{registry}/team/toy:1", str(key.with_suffix(".pub"))
    assert call("push", "team/toy:1", place, "--sign-key", str(key)).status == 0
    monkeypatch.setenv("REPROBUILD_HOME", str(tmp_path / "another"))
    read: list[str] = []
    read_blob = Registry.read_blob

    def noted(self: Registry, digest: str) -> bytes:
        read.append(digest)
        return read_blob(self, digest)

    monkeypatch.setattr(Registry, "read_blob", noted)
    found = json.loads(call("inspect", place, "--key", public, "--json").out)
    assert found["digest"] == image
    assert found["test"]["signed"]
    assert {len(each["signers"]) for each in found["evidence"]} == {1}
    layers = [layer["digest"] for layer in found["layers"]]
    assert set(read) & set(layers) == {layers[-1]}
    other = str(write_key(tmp_path, "other").with_suffix(".pub"))
    found = json.loads(call("inspect", place, "--key", other, "--json").out)
    assert not found["test"]["signed"]
    assert {each["text"] for each in found["evidence"]} == {"signed by none of the given keys"}
    found = json.loads(call("inspect", place, "--json").out)
    assert {each["text"] for each in found["evidence"]} == {"signed; --key says by whom"}


def test_evidence_of_another_image_is_named_as_such(
    image: str, runs: Any, lock: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("export", "team/toy:1", "toy.tar").status == 0
    beside = Path("toy.tar.evidence.jsonl")
    beside.write_text(beside.read_text().replace(image[7:], "0" * 64) + "{}\n")
    said = call("inspect", "toy.tar", "--json")
    assert said.status == 0, said.err
    found = json.loads(said.out)
    texts = [each["text"] for each in found["evidence"]]
    assert texts[-1].startswith("cannot be read: ")
    assert "layers: " in found["unknown"][0]
    assert found["size"] is None


def test_the_page_loads_nothing_and_says_what_the_terminal_says(image: str, call: Call) -> None:
    said = call("inspect", "team/toy:1", "-o", "page.html")
    assert said.status == 0
    assert said.out == f"page.html: team/toy:1, {image}\n"
    page = Path("page.html").read_text()
    assert set(re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)) == {"data:,"}
    assert page.count('<tr class="package">') == len(
        json.loads(call("inspect", "team/toy:1", "--json").out)["packages"]
    )
    assert "@media (prefers-color-scheme: dark)" in page
    assert not re.findall(r"(?:color|background): #", page), "a colour that is no variable stays in the dark"
    assert call("inspect", "team/toy:1", "-o", "no/page.html").status == 11


@pytest.mark.slow
def test_a_browser_draws_the_layers_and_searches(image: str, call: Call) -> None:
    call("inspect", "team/toy:1", "-o", "page.html")
    page = Path("page.html").absolute()
    text = page.read_text()
    find = "const s = document.getElementById('search');"
    search = f"{find} s.value = 'frames'; s.dispatchEvent(new Event('input'));"
    page.write_text(text.replace("</script>", search + "</script>"))
    shown = dom(page)
    assert shown.count('class="bar"') == text.count('class="bar"') > 0
    assert shown.count('<tr class="package">') == 1
