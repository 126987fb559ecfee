"""A lock with a base image: its text, the image's configuration, its layers and its Dockerfile. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import tomli_w

from reprobuild.errors import LockError, RenderError
from reprobuild.layers.plan import plan
from reprobuild.lock.base_image import BaseImage, BaseLayer
from reprobuild.lock.bill import cyclonedx
from reprobuild.lock.diff import diff
from reprobuild.lock.exports import explicit
from reprobuild.lock.model import Lock
from reprobuild.lock.reader import parse_lock
from reprobuild.render.dockerfile import render
from reprobuild.render.image_config import image_config
from support.locks import LOCK as PLAIN

MANIFEST = "sha256:" + "a" * 64
BASE = BaseImage(
    image="registry.example.org:5000/team/base:1",
    index="sha256:" + "b" * 64,
    manifests={"linux/amd64": MANIFEST, "linux/arm64": "sha256:" + "c" * 64},
    config="sha256:" + "d" * 64,
    created="2024-09-01T00:00:00Z",
    system="Debian GNU/Linux 12 (bookworm)",
    suite="bookworm",
    glibc="2.36",
    python="/usr/local/bin/python3.11",
    python_version="3.11.9",
    cuda=("/usr/lib/libnccl.so.2",),
    env={"PATH": "/usr/local/bin:/bin", "TEAM": "us", "LANG": "de_DE", "PS1": "`id` $HOME"},
    layers=tuple(
        BaseLayer(
            digest="sha256:" + str(n) * 64,
            size=n,
            media_type="application/vnd.oci.image.layer.v1.tar+gzip",
            diff_id="sha256:" + str(n + 4) * 64,
        )
        for n in (1, 2)
    ),
)
LOCK = replace(
    PLAIN, base=BASE, debian=(), request=replace(PLAIN.request, base_image=BASE.image, allow_cuda=True)
)
ON_TOP = replace(
    LOCK,
    base=replace(BASE, python="", python_version=""),
    debian=[p for p in PLAIN.debian if "python3.11" in p.name],
)


@pytest.mark.parametrize("lock", [LOCK, ON_TOP, replace(LOCK, base=replace(BASE, index=None, suite=""))])
def test_the_text_reads_back(lock: Lock) -> None:
    found = parse_lock(lock.dump(), "x")
    assert found == lock
    assert found.dump() == lock.dump()


@pytest.mark.parametrize("lock", [PLAIN, LOCK, ON_TOP])
def test_every_locked_file_is_an_artifact(lock: Lock) -> None:
    found = list(lock.artifacts)
    named = set(re.findall(r'^(?:hashes = \{ )?sha256 = "([0-9a-f]{64})"', lock.dump(), re.MULTILINE))
    layers = () if lock.base is None else lock.base.layers
    assert {each.sha256 for each in found} == named | {layer.sha256 for layer in layers}
    assert len(found) == len(lock.python) + len(lock.debian) + len(layers)
    assert lock.size == sum(each.size for each in found)
    twice = replace(lock, python=[*lock.python, replace(lock.python[0], name="a-copy")])
    assert twice.size == lock.size
    assert [f"{each.address}#sha256:{each.sha256}" for each in found] == explicit(lock).splitlines()[1:]


def test_what_the_lock_says() -> None:
    assert LOCK.stack["python"] == "3.11.9"
    assert LOCK.interpreter == "/usr/local/bin/python3.11"
    assert ON_TOP.stack["python"] == PLAIN.stack["python"]
    assert ON_TOP.interpreter == "/usr/bin/python3.11"
    assert replace(LOCK, base=replace(BASE, suite="")).suite == ""
    other = replace(LOCK, base=replace(BASE, manifests={"linux/amd64": BASE.config}))
    assert other.digest != LOCK.digest
    assert "base.digest" in str(diff(LOCK, other))
    assert f"registry.example.org:5000/team/base@{BASE.layers[0].digest}" in explicit(LOCK)
    assert "pkg:oci/base@sha256%3Aaaa" in cyclonedx(LOCK)


BAD: tuple[tuple[str, Any, str], ...] = (
    ("image", "A b", "'A b' is not a valid image"),
    ("image", 1, "text in quotes"),
    ("index", "sha256:1", "base.index"),
    ("manifests", {"linux/amd64": "x"}, r"manifests\.linux/amd64: 'x' is not a digest"),
    ("manifests", {"linux/arm64": MANIFEST}, r"base\.manifests: linux/amd64 is missing"),
    ("config", "", "base.config"),
    ("suite", "Bookworm", "base.suite"),
    ("glibc", "", "base.glibc"),
    ("python", "/usr/bin/../python", "base.python"),
    ("python", "/usr/bin/python3.11; id", "base.python"),
    ("python-version", "3.11.9 evil", "base.python-version"),
    ("cuda", [1], r"base\.cuda\[0\]"),
    ("env", {"A B": "x"}, "env.A B"),
    ("env", {"A": "x\ny"}, "env.A"),
    ("created", "x\ny", "base.created"),
    ("layers", [], "base.layers: missing"),
    ("layers", [{}], r"base\.layers\[0\]"),
    ("layers", ["x"], r"base\.layers\[0\]: expected a table"),
    ("more", 1, "base.more: unknown key"),
)


@pytest.mark.parametrize(("key", "value", "said"), BAD)
def test_a_bad_base_is_refused_with_its_place(key: str, value: Any, said: str) -> None:
    table = LOCK.table()
    table["tool"]["reprobuild"]["digest"] = LOCK.digest
    table["tool"]["reprobuild"]["base"][key] = value
    with pytest.raises(LockError, match=said):
        parse_lock(tomli_w.dumps(table), "x")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("digest", "sha256:x"),
        ("size", 0),
        ("size", -1),
        ("media-type", "text/plain"),
        ("diff-id", ""),
        ("x", 1),
    ],
)
def test_a_bad_layer_is_refused(key: str, value: Any) -> None:
    table = LOCK.table()
    table["tool"]["reprobuild"]["digest"] = LOCK.digest
    table["tool"]["reprobuild"]["base"]["layers"][1][key] = value
    with pytest.raises(LockError, match=r"base\.layers\[1\]"):
        parse_lock(tomli_w.dumps(table), "x")


def test_a_base_that_the_request_does_not_ask_for() -> None:
    for lock in (replace(LOCK, request=PLAIN.request), replace(PLAIN, request=LOCK.request)):
        with pytest.raises(LockError, match=r"base: does not match the request"):
            parse_lock(lock.dump(), "x")


def test_variables_of_the_base_are_below_our_own() -> None:
    config = image_config(LOCK)
    assert config.env["PATH"] == "/opt/venv/bin:/usr/local/bin:/bin"
    assert (config.env["TEAM"], config.env["LANG"]) == ("us", "C.UTF-8")
    assert config.labels["org.opencontainers.image.base.digest"] == MANIFEST
    assert config.labels["dev.reprobuild.debian"] == "bookworm"


def test_layers() -> None:
    kinds = [layer.kind for layer in plan(LOCK)]
    assert kinds[:3] == ["base", "base", "environment"]
    assert [layer.kind for layer in plan(ON_TOP)][:4] == ["base", "base", "debian", "environment"]
    # What is on top hangs on what is below.
    other = replace(ON_TOP, base=replace(ON_TOP.base or BASE, layers=BASE.layers[:1]))
    debian = [layer.key for lock in (ON_TOP, other) for layer in plan(lock) if layer.kind == "debian"]
    assert len(set(debian)) == 2
    many = replace(LOCK, base=replace(BASE, layers=tuple(BASE.layers) * 40))
    assert len(plan(many)) + 1 <= 127


def test_the_dockerfile_starts_from_it() -> None:
    text = render(LOCK).files["Dockerfile"].decode()
    assert f"\nFROM registry.example.org:5000/team/base@{MANIFEST} AS debian\nUSER 0\n\nFROM debian" in text
    assert "debian.tar" not in text
    assert b"debian.tar" not in render(LOCK).files[".dockerignore"]
    assert "/usr/local/bin/python3.11 -m venv" in text
    # What is inherited is not written again, whatever stands in it.
    assert "PS1" not in text
    assert 'PATH="/opt/venv/bin:/usr/local/bin:/bin"' in text
    on_top = render(ON_TOP).files["Dockerfile"].decode()
    assert "AS debian\nUSER 0\nADD debian.tar /\n" in on_top


def test_a_hostile_name_does_not_reach_the_dockerfile() -> None:
    for image in ("registry.example.org/a b:1", "registry.example.org/a\nRUN id:1"):
        with pytest.raises((RenderError, AssertionError)):
            render(replace(LOCK, base=replace(BASE, image=image)))


def test_a_base_that_the_request_does_not_name_is_refused() -> None:
    """A forged lock would be of the committed request, and start from a stranger's image."""
    lock = replace(LOCK, base=replace(BASE, image="evil.example/team/base:1"))
    with pytest.raises(LockError, match=r"base\.image: 'evil.example/team/base:1' is not what the request"):
        parse_lock(lock.dump(), "x")
