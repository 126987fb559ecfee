"""Our reader of layers, held to what engines unpack.

Each image archive that our reader reads has the same files in Docker 20.10, Docker 26.1 and Podman, unless
the engine refuses it. What our reader refuses is not compared.

``REPROBUILD_TEST_LAYERS=2000:7`` compares 2,000 drawn images from seed 7 on, in place of `DRAWN` from seed 0.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from reprobuild.errors import ImageError
from reprobuild.oci.file_tree import REPLACED, read_tree
from reprobuild.oci.stream import archive_members
from reprobuild.oci.tar_writer import Record
from support.engines import ENGINES, Site, running
from support.odd_layers import NAMED, Layers, Shown, archive, drawn, exported, mounted

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.engines

DRAWN = 30


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Layers, Shown]]:
    """Those images that our reader reads, with the files that it finds."""
    count, _, first = os.environ.get("REPROBUILD_TEST_LAYERS", f"{DRAWN}:0").partition(":")
    file = tmp_path_factory.mktemp("read") / "one.tar"
    found = {name: (layers, shown) for name, layers in NAMED.items() if (shown := ours(file, name, layers))}
    seed, most = int(first or 0), len(found) + int(count)
    while len(found) < most:
        name, layers = f"seed {seed}", drawn(seed)
        if shown := ours(file, name, layers):
            found[name] = layers, shown
        seed += 1
    return found


def ours(file: Path, name: str, layers: Layers) -> Shown | None:
    """Return the files that our reader finds; None for what it refuses."""
    archive(file, {"one:1": layers})
    try:
        with file.open("rb") as opened:
            tree = read_tree(archive_members(opened), name)
    except ImageError:
        return None
    return {path: shown(record) for path, record in tree.files.items()}


def shown(record: Record) -> tuple[str, int, str, str, str]:
    # The numbers of the default devices are not compared.
    content = "" if record.kind == "other" else record.content
    return record.kind, record.mode, record.owner, content, record.attributes


@pytest.fixture(scope="module", params=ENGINES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from running(request, tmp_path_factory.mktemp("engine") / "site")


def test_what_our_reader_reads_is_what_an_engine_unpacks(
    site: Site, read: Mapping[str, tuple[Layers, Shown]], tmp_path: Path
) -> None:
    tags = {f"odd:{number}": name for number, name in enumerate(read)}
    taken = [
        tag
        for part in batched(tags, 12)
        for tag in load(site, tmp_path, {tag: read[tags[tag]][0] for tag in part})
    ]
    different = {}
    for tag, theirs in unpacked(site, taken):
        found = compared(site, read[tags[tag]][1])
        if found != (theirs := compared(site, theirs)):
            different[tags[tag]] = {
                "ours": found.items() - theirs.items(),
                "theirs": theirs.items() - found.items(),
            }
    assert different == {}
    # Each engine refuses a few more: a path twice in a layer, a whiteout in a folder that is not there.
    refused = sorted(tags[tag] for tag in tags.keys() - set(taken))
    assert len(refused) < len(tags) * 0.3, refused


def batched(names: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = list(names)
    while rest:
        yield rest[:size]
        del rest[:size]


def compared(site: Site, files: Shown) -> Shown:
    """Return the files without what Docker puts into a container, or does not export."""
    if site.kind == "podman":
        return files
    return {path: (*it[:4], capability(it[4])) for path, it in files.items() if path not in REPLACED}


def capability(attributes: str) -> str:
    return "\n".join(each for each in attributes.split("\n") if each.startswith("security.capability="))


def load(site: Site, folder: Path, images: Mapping[str, Layers]) -> Iterator[str]:
    """Load images together; where the engine refuses, by halves. Yield the names that it took."""
    file = archive(folder / "some.tar", images)
    done = subprocess.run(
        [site.kind, "load", "--quiet", "-i", str(file)],
        env={**os.environ, **site.env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        yield from images
    elif len(images) > 1:
        for part in batched(images, -(-len(images) // 2)):
            yield from load(site, folder, {name: images[name] for name in part})


def unpacked(site: Site, tags: list[str]) -> Iterator[tuple[str, Shown]]:
    """Yield the files of each image in an engine."""
    if site.kind == "podman":
        for each in json.loads(site.call("image", "mount", "--format", "json", *tags)):
            shown = mounted(Path(each["mountpoint"]))
            yield from ((name.removeprefix("localhost/"), shown) for name in each["Repositories"])
        return
    for tag in tags:
        container = site.call("create", tag, "none").strip()
        done = subprocess.run(
            ["docker", "export", container], env={**os.environ, **site.env}, capture_output=True, check=True
        )
        site.call("rm", container)
        yield tag, exported(io.BytesIO(done.stdout))
