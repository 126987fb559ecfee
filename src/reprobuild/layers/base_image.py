"""Layers of a base image, unchanged, and locked Debian packages on top of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from ..errors import BuildError
from ..fetch.base_layers import documents_of
from ..fetch.store import Store
from ..host import namespaces, process, sandbox
from ..host.home import Home, storage_errors
from ..host.untrusted_files import walk
from ..lock.base_image import BaseImage, BaseLayer
from ..lock.model import Lock
from ..oci.file_tree import nothing, read_layers
from ..oci.tar_writer import Layer, LayerWriter
from .cache import Cached, LayerCache
from .debian import MOST_SECONDS, SLOW_SCRIPT, normalise, pool
from .plan import LayerPlan
from .unpacked_layers import OPAQUE

_MOUNT = "/mnt"
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID", "SYS_CHROOT")
"""What dpkg and the packages' own scripts need to set owners and modes."""


def base_layers(base: BaseImage, plans: Sequence[LayerPlan], store: Store, cache: LayerCache) -> list[Cached]:
    """Return the layers of a base image, taken over from the store, where all of them are.

    The last one has the paths of the whole, since what a layer hides is known only with those below.
    """
    pairs = list(zip(base.layers, plans, strict=False))
    found = [cache.get(plan.key) for _, plan in pairs]
    done = [cached for cached in found if cached is not None]
    if len(done) == len(pairs):
        return done
    tree = read_layers((store.path(layer.sha256) for layer in base.layers), nothing)
    records = tuple(tree.files[path] for path in sorted(tree.files))
    last, documents = pairs[-1][0], documents_of(base)
    return [
        cache.take_over(
            plan.key,
            store.path(layer.sha256),
            Cached(_layer(layer), records if layer is last else (), (layer.sha256, *documents)),
        )
        for layer, plan in pairs
    ]


def write_on_top(
    lock: Lock,
    store: Store,
    below: Sequence[Path],
    home: Home,
    out: LayerWriter,
    *,
    owners: Mapping[str, str],
) -> None:
    """Install the lock's Debian packages over the unpacked layers of its base, and write what that changed.

    ``owners`` are those of the base's files, by path: an ordinary user's unpacked layers have lost them.

    Raises `HostError`, and `BuildError` when they do not install, or take something of the base away.
    """
    namespaces.check(all_ids=True)
    with home.scratch("on-top") as folder:
        workshop, bundle, archive = folder / "workshop", folder / "bundle", folder / "upper.tar"
        with storage_errors(folder):
            bundle.mkdir()
            workshop.mkdir()
            pool(workshop / "pool", lock, store)
        files = " ".join(f"{_MOUNT}/pool/{package.filename}" for package in lock.debian)
        # Twice: a package may need another one configured before it is even unpacked.
        install = f"dpkg --force-unsafe-io --install {files}"
        task = sandbox.Task(
            argv=["/bin/sh", "-c", f"umask 022; {install} || {install}"],
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LC_ALL": "C.UTF-8",
                "DEBIAN_FRONTEND": "noninteractive",
                "PYTHONHASHSEED": "0",
            },
            binds=[sandbox.Bind(source=workshop, destination=_MOUNT)],
            writable=True,
            capabilities=_CAPABILITIES,
            all_ids=True,
        )
        what = "the Debian packages were not installed on top of the base"
        with process.named_when_stopped(BuildError, what, slow=SLOW_SCRIPT):
            done = sandbox.run(bundle, below, task, timeout=MOST_SECONDS)
        if done.returncode != 0:
            raise BuildError(
                f"the Debian packages could not be put on top of the base: {process.tail(done.stderr)}",
                hint="run again with -v for the whole output of dpkg",
            )
        _refuse_removals(bundle / "upper", owners)
        command = ["tar", "--create", "--numeric-owner", "--directory", str(bundle / "upper"), "."]
        process.run([*namespaces.prefix(all_ids=True), *command, "--file", str(archive)])
        with storage_errors(archive), archive.open("rb") as file:
            normalise(file, out, owners)


def _refuse_removals(upper: Path, base: Container[str]) -> None:
    """Refuse what overlayfs has marked as gone: a Dockerfile's ADD could not do the same."""
    paths = sorted(name for name, _ in walk(upper))
    gone = [f"/{name}" for name in paths if _is_gone(upper / name, in_base=name in base)]
    if gone:
        raise BuildError(
            f"the Debian packages take files of the base away: {', '.join(gone[:5])}",
            hint="leave out the apt package that does, or take a base without those files",
        )


def _is_gone(path: Path, *, in_base: bool) -> bool:
    found = path.lstat()
    if stat.S_ISCHR(found.st_mode):
        return found.st_rdev == os.makedev(0, 0)
    # A new folder has the mark too, where it hides nothing.
    return in_base and stat.S_ISDIR(found.st_mode) and OPAQUE in os.listxattr(path)


def _layer(layer: BaseLayer) -> Layer:
    return Layer(layer.diff_id, layer.digest, layer.size, layer.media_type)
