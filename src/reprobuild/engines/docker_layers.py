"""Folders of the layers of a local Docker image, in the order of overlayfs.

The older store says where they are. containerd's store does not, and its socket may be elsewhere: but what
the daemon mounts for a container is in the kernel's list of its mounts (proc_pid_mountinfo(5)).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import docker

from ..host.untrusted_files import walk
from ..oci.file_tree import REPLACED
from ..oci.stream import CHUNK
from .docker_client import daemon_process, is_local

_PROC = Path("/proc")
_OVERLAY = re.compile(r"\S+ \S+ \S+ \S+ (\S+) [^\n]* - overlay \S+ (\S+)", re.ASCII)
_ESCAPED = re.compile(r"\\([0-7]{3})")


def are_readable(info: Mapping[str, Any]) -> bool:
    """Whether the daemon's folders are this user's to read, by what it says of itself.

    Not where it is elsewhere, or shifts user ids: then the owners on this disk are not those of the image.
    """
    shifted = any("name=userns" in each or "name=rootless" in each for each in info["SecurityOptions"] or ())
    return os.geteuid() == 0 and not shifted and is_local()


def listed_layers(image: Mapping[str, Any]) -> list[Path]:
    """Return the folders of an image's layers, the lowest first, by what the daemon says of the image.

    None for an image in containerd's store, in that of another storage driver, or on another machine.
    """
    graph = image.get("GraphDriver") or {}
    data = graph.get("Data") or {}
    if graph.get("Name") != "overlay2":
        return []
    above = [data.get("UpperDir", ""), *filter(None, data.get("LowerDir", "").split(":"))]
    folders = [Path(each) for each in reversed(above)]
    return folders if all(each.is_absolute() and each.is_dir() for each in folders) else []


def mounted_layers(client: docker.DockerClient, container: str, count: int) -> list[Path]:
    """Return the folders of the ``count`` layers of a container's image, the lowest first.

    The container is one that is not started; what Docker puts over the image for it is not among them. None
    where they cannot be told, or are not seen from here.
    """
    daemon = daemon_process()
    if daemon is None:
        return []
    # The daemon mounts it for as long as it is read.
    with closing(client.api.export(container, chunk_size=CHUNK)) as stream, suppress(OSError):
        next(iter(stream), b"")
        mounts = (_PROC / str(daemon) / "mountinfo").read_text("utf-8", "surrogateescape")
        above, *below = lower_folders(mounts, container) or ["", ""]
        root = _PROC / str(daemon) / "root"
        folders = [root / each.lstrip("/") for each in reversed(below)]
        if (
            len(folders) == count
            and all(map(Path.is_dir, folders))
            and _is_docker_s(root / above.lstrip("/"))
        ):
            return folders
    return []


def lower_folders(mounts: str, container: str) -> list[str]:
    """Return the overlayfs folders below a container's own files, the uppermost first; empty without a mount.

    ``mounts`` is a ``mountinfo``; the container's mount point ends with its id.
    """
    for line in mounts.splitlines():
        found = _OVERLAY.match(line)
        if found is None or not _plain(found[1]).endswith(f"/{container}"):
            continue
        options = [each.partition("=")[::2] for each in found[2].split(",")]
        lower = [
            _plain(each)
            for key, value in options
            if key in ("lowerdir", "lowerdir+")
            for each in value.split(":")
        ]
        upper = next((_plain(value) for key, value in options if key == "upperdir"), "")
        # containerd shortens a long list to paths in the folder of all snapshots.
        snapshots = Path(upper).parents[1] if upper.startswith("/") else Path()
        paths = [str(snapshots / each) for each in lower]
        # A colon in a name is written with a backslash.
        return paths if all(each.startswith("/") and "\\" not in each for each in paths) else []
    return []


def _is_docker_s(folder: Path) -> bool:
    """Whether a layer holds what Docker puts into every container, and nothing else."""
    return (folder / ".dockerenv").exists() and all(path in REPLACED for path, _ in walk(folder))


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
