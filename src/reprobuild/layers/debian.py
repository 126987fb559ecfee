"""Base layer of Debian packages, installed by mmdebstrap, without anything that depends on host or time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO

from ..errors import BuildError
from ..fetch.deb_file import archive_entry
from ..fetch.store import Store
from ..host import minimal_root, namespaces, process, untrusted_files
from ..host.home import Home, raise_if_full, storage_errors
from ..host.workers import workers
from ..in_image.debian_root import LEFT_OUT, LOG, content
from ..lock.merged_usr import links_into_usr
from ..lock.model import Lock
from ..oci.tar_fields import LayerRefused
from ..oci.tar_reader import Entry, Reader
from ..oci.tar_writer import MTIME, LayerWriter

MOST_SECONDS = 3600
"""For installing Debian packages: a hundred times what a root of some two hundred takes."""
SLOW_SCRIPT = "a script of a package waits for something; run again with -v, or leave the package out"


def write_debian(lock: Lock, store: Store, home: Home, out: LayerWriter) -> None:
    """Install the lock's Debian packages into an empty root and write it as a layer.

    Needs mmdebstrap and `namespaces.check` with all ids. Raises `HostError` where these are missing,
    `BuildError` when the packages do not install.
    """
    mmdebstrap = process.require("mmdebstrap", "to install the Debian packages of the image")
    namespaces.check(all_ids=True)
    with home.scratch("debian") as folder:
        pool(folder / "pool", lock, store)
        command = [
            mmdebstrap,
            "--mode=root",
            "--variant=custom",
            "--format=tar",
            *(f'--setup-hook=mkdir -p "$1/usr/{y}"; ln -s usr/{y} "$1/{y}"' for y in links_into_usr(lock)),
            # dpkg waits for the disk after each package, and so for all the gigabytes that are being written.
            "--dpkgopt=force-unsafe-io",
            '--customize-hook=rm "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"',
            "--include=" + ",".join(p.name for p in lock.debian),
            f"--architectures={lock.platform.partition('/')[2]}",
            lock.request.suite,
            f"{minimal_root.WORK}/root.tar",
            # The packages were verified against the lock, whose hashes apt took from the signed archive.
            f"deb [trusted=yes] copy://{minimal_root.WORK}/pool ./",
        ]
        env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LC_ALL": "C.UTF-8",
            "HOME": "/",
            "TMPDIR": minimal_root.WORK,
            "SOURCE_DATE_EPOCH": str(MTIME),
            "DEBIAN_FRONTEND": "noninteractive",
        }
        try:
            with process.named_when_stopped(
                BuildError, "the Debian packages were not installed", slow=SLOW_SCRIPT
            ):
                minimal_root.run(folder, command, env=env, timeout=MOST_SECONDS)
        except process.ProcessFailed as failed:
            with storage_errors(folder):
                raise_if_full(failed.tail, folder)
            raise BuildError(
                f"the Debian packages could not be installed: {failed.tail}",
                hint="run again with -v for the whole output of mmdebstrap",
            ) from None
        with storage_errors(folder), untrusted_files.opened(folder, "root.tar") as file:
            normalise(file, out)


def normalise(archive: IO[bytes], out: LayerWriter, owners: Mapping[str, str] | None = None) -> None:
    """Write the root's tar as a layer: sorted, with one time stamp, independent of host and clock.

    ``owners``, as ``0:8`` by path, count for more than those in the tar.
    """
    members: dict[str, tuple[Entry, int]] = {}
    try:
        reader = Reader(archive)
        for entry in reader:
            members[entry.path] = entry, reader.position
    except LayerRefused as refused:
        raise BuildError(f"the root that the Debian packages made cannot be read: {refused}") from None
    members.pop("", None)
    # The root itself, whose mode a builder would else choose.
    out.folder(".")
    for path, (entry, start) in sorted(members.items()):
        uid, _, gid = (owners or {}).get(path, f"{entry.uid}:{entry.gid}").partition(":")
        owner = {"uid": int(uid), "gid": int(gid)}
        if LEFT_OUT.fullmatch(path) or (LOG.fullmatch(path) and entry.kind != "dir"):
            continue
        if entry.kind == "dir":
            out.folder(path, entry.mode, **owner)
        elif entry.kind == "link":
            out.link(path, entry.target)
        elif entry.kind in ("file", "hardlink"):
            # A second name of a file becomes a file of its own, so that nothing depends on the order.
            first, at = (entry, start) if entry.kind == "file" else members.get(entry.target, (entry, start))
            if first.kind != "file":
                raise BuildError(f"/{path}: a hard link to nothing")
            archive.seek(at)
            data = content(path, archive.read(first.size))
            out.file(path, entry.mode, len(data), [data], **owner)
        else:
            raise BuildError(f"/{path}: a Debian package created neither a file, a folder nor a link")


def pool(folder: Path, lock: Lock, store: Store) -> None:
    """Lay the packages out as a flat archive that apt reads, inflated.

    mmdebstrap reads the files of each package twice, one package after the other; here all processors do.
    Raises `BuildError` for bytes that are not the lock's, or no package, and `StorageError`.
    """
    with storage_errors(folder):
        folder.mkdir()
        folder.chmod(0o755)
        with workers(len(os.sched_getaffinity(0))) as threads:
            stanzas = list(threads.map(partial(archive_entry, store=store, folder=folder), lock.debian))
        index = folder / "Packages"
        index.write_text("\n".join(stanzas), encoding="utf-8")
        index.chmod(0o644)
