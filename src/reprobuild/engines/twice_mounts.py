"""Mounts of a container for a run of ``twice``, and the files that it has written.

The embedded engine binds the recorder and a folder for the records. Docker and Podman, which may be on
another machine, get the recorder as a tar in the container's own layer, and give what was written as tars.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import assets
from ..errors import EngineError
from ..host.descriptors import FOLDER, closing_descriptor
from ..host.sandbox import HOSTNAME as OWN_NAME
from ..host.sandbox import Bind
from ..layers.unpack import unpack_entries
from ..oci.tar_fields import LayerRefused, number
from ..oci.tar_reader import Entry, Readable, Reader
from ..render.labels import LABEL
from ..request.image_layout import SITE_PREFIX
from ..twice.line_records import VALUES
from ..twice.recorded_run import RECORDS
from ..twice.suspects import LAUNCH
from ..twice.written import is_left_out

if TYPE_CHECKING:
    from collections.abc import Iterator

IN_CONTAINER = "/run/reprobuild/records"
"""Where the recorder writes."""
HOSTNAME = OWN_NAME
"""The same in each run: Docker's and Podman's own are drawn."""
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")
"""What lets root in the container write into folders of the host's users, as root does in the embedded
engine."""
PACKAGE = "reprobuild_twice"
"""The recorder's name in the container's site-packages."""
SETTINGS = "settings"
"""The file that it reads where the variables are missing; see in_image/twice/settings.py."""
VARIABLES = "REPROBUILD_TWICE"
"""What the names of the recorder's variables begin with."""
PATH_FILE = b"import reprobuild_twice\n"
PYTHON = f"{SITE_PREFIX}/bin/python3"
"""The environment's, in an image."""
_LAUNCHER = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
VIEWS = "/views"
"""Where a container that is never started has the views of bound folders."""
_MTIME = 315532800


def recorder_files(env: Mapping[str, str]) -> dict[str, bytes]:
    """Return the recorder, with its variables for processes that get others: name → content."""
    given = "".join(f"{name}={value}\0" for name, value in env.items() if name.startswith(VARIABLES))
    return {**assets.in_image_package("twice"), SETTINGS: os.fsencode(given)}


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a program gets; some of the recorder's are in its file alone."""
    return {name: value for name, value in env.items() if name != VALUES}


def launched(argv: Sequence[str], env: Mapping[str, str], python: str | None) -> list[str]:
    """Return a command, started by a Python with the recorder where the run's variables ask for that."""
    return [python, "-c", _LAUNCHER, *argv] if python and LAUNCH in env else list(argv)


def recorder_binds(folder: Path, layers: Sequence[Path], env: Mapping[str, str]) -> list[Bind]:
    """Write the recorder into a run's folder and return what binds it, and its records, into the container.

    Of an image without the environment of reprobuild's, only the folder for the records: nothing will be in
    it.
    """
    records = folder / RECORDS
    records.mkdir()
    records.chmod(0o777)  # the program may run as any user
    binds = [Bind(source=records, destination=IN_CONTAINER, writable=True)]
    site = site_packages(layers)
    if site is not None:
        recorder = folder / "recorder"
        for name, content in recorder_files(env).items():
            (recorder / PACKAGE).mkdir(parents=True, exist_ok=True)
            (recorder / PACKAGE / name).write_bytes(content)
        (recorder / f"{PACKAGE}.pth").write_bytes(PATH_FILE)
        binds += [
            Bind(source=recorder / name, destination=f"{site}/{name}") for name in (PACKAGE, f"{PACKAGE}.pth")
        ]
    return binds


def site_packages(layers: Sequence[Path]) -> str | None:
    """Return the path in the image of the environment's site-packages; layers are lowest first."""
    for layer in reversed(layers):
        for found in sorted(layer.glob(f"{SITE_PREFIX.lstrip('/')}/lib/python3*/site-packages")):
            if found.is_dir() and not found.is_symlink():
                return f"/{found.relative_to(layer)}"
    return None


def labelled_site(labels: Mapping[str, str]) -> str | None:
    """Return the same path by an image's labels; None for an image that does not start from one of ours."""
    minor = ".".join(labels.get(LABEL + "python", "").split(".")[:2])
    return f"{SITE_PREFIX}/lib/python{minor}/site-packages" if minor else None


def with_init(argv: Sequence[str], site: str | None) -> list[str]:
    """Return a command started by the image's Python, where it has one; see in_image/init.py."""
    if site is None:
        return list(argv)
    return [PYTHON, "-I", "-S", "-c", assets.in_image("init.py").decode(), *argv]


def recorder_tar(site: str | None, files: Iterable[Bind], env: Mapping[str, str]) -> bytes:
    """Return what goes into the container's own layer before it starts, as a tar that begins at ``/``.

    The recorder, the folder for its records, and copies of the ``files`` that a program may write over.
    """
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:

        def add(path: str, content: bytes | None, mode: int, owner: tuple[int, int] = (0, 0)) -> None:
            info = tarfile.TarInfo(path.lstrip("/"))
            info.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
            info.mode, info.mtime = mode, _MTIME
            info.uid, info.gid = owner
            info.size = len(content or b"")
            tar.addfile(info, io.BytesIO(content or b""))

        add(str(Path(IN_CONTAINER).parent), None, 0o755)
        add(IN_CONTAINER, None, 0o777)  # the program may run as any user
        if site is not None:
            add(f"{site}/{PACKAGE}", None, 0o755)
            for name, content in recorder_files(env).items():
                add(f"{site}/{PACKAGE}/{name}", content, 0o644)
            add(f"{site}/{PACKAGE}.pth", PATH_FILE, 0o644)
        for bind in files:
            status = bind.source.stat()
            owner = (status.st_uid, status.st_gid)
            add(bind.destination, bind.source.read_bytes(), status.st_mode & 0o777, owner)
    return out.getvalue()


def views_tar(folders: Sequence[Bind]) -> bytes:
    """Return the folders that overlayfs needs for a view of each folder of the host: ``N/upper``,
    ``N/work``."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for index, bind in enumerate(folders):
            status = bind.source.stat()
            for name in ("", "/upper", "/work"):
                info = tarfile.TarInfo(f"{index}{name}")
                info.type, info.mode, info.mtime = tarfile.DIRTYPE, status.st_mode & 0o7777, _MTIME
                info.uid, info.gid = status.st_uid, status.st_gid
                tar.addfile(info)
    return out.getvalue()


def overlay_options(bind: Bind, number_: int, place: str, folder: Path) -> tuple[str, str, str]:
    """Return lower, upper and work folder of a view; ``place`` is where the engine keeps the views' own.

    A source whose name an option cannot hold gets another one, in ``folder``.
    """
    source = bind.source
    if any(each in str(source) for each in ",:\\"):
        source = folder / f"bound-{number_}"
        source.symlink_to(bind.source.absolute())
    return str(source), f"{place}/{number_}/upper", f"{place}/{number_}/work"


class _Written(Reader):
    """The entries of a tar that an engine gives, readable for this user; with overlayfs's marks.

    ``skip`` is how many first parts of their paths do not count; None: it is of one file or link. Of
    ``views`` overlayfs's own folders are left out.
    """

    def __init__(self, tar: Readable, skip: int | None, *, views: bool) -> None:
        super().__init__(tar)
        self._skip, self._views = skip, views
        self._removed: set[str] = set()

    def device(self, block: bytes, path: str) -> str:
        """Allow the device node by which overlayfs marks a removed file."""
        if block[156:157] == b"3" and (number(block[329:337], "n"), number(block[337:345], "n")) == (0, 0):
            return "0:0"
        raise LayerRefused(f"{path!r} is a device node")

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries."""
        for entry in super().__iter__():
            if self._skip is None and entry.kind == "dir":
                return
            path, target = self._skipped(entry.path), entry.target
            if not path or (self._views and path.split("/")[1:2] == ["work"]):
                continue
            folder, _, name = path.rpartition("/")
            mode = entry.mode | (0o700 if entry.kind == "dir" else 0o600)
            # overlayfs has one node for all that was removed, to which the others are hard links.
            if entry.kind == "device" or (entry.kind == "hardlink" and entry.target in self._removed):
                self._removed.add(entry.path)
                yield replace(entry, path=f"{folder}/.wh.{name}".lstrip("/"), kind="file", mode=mode)
            else:
                target = self._skipped(target) if entry.kind == "hardlink" else target
                yield replace(entry, path=path, mode=mode, target=target)

    def _skipped(self, path: str) -> str:
        return "/".join(path.split("/")[self._skip or 0 :])


def unpack_written(tar: Readable, folder: Path, *, skip: int | None, views: bool = False) -> None:
    """Write what an engine's tar has into ``folder``, each path without its ``skip`` first parts.

    None: the tar is of one file; of a folder nothing is written. ``views``: it is of what `views_tar` made.
    What a program wrote is a stranger's: no link is followed. Raises `EngineError`.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with closing_descriptor(os.open(folder, FOLDER)) as root:
            unpack_entries(_Written(tar, skip, views=views), root, owners=False, opaque="user.overlay.opaque")
    except LayerRefused as refused:
        raise EngineError(f"what the program wrote cannot be read: {refused}") from None


def keep_changed(
    changes: Mapping[str, bool], folder: Path, read: Callable[[str], AbstractContextManager[Readable]]
) -> None:
    """Write the files that a container changed into ``folder``: by path, whether it was removed.

    ``read`` gives a file's tar. Folders that are listed for what is in them, and what is not compared, are
    left out.
    """
    folder.mkdir(mode=0o700)
    parents = {path.rpartition("/")[0] for path in changes}
    for path, removed in sorted(changes.items()):
        if path in parents or is_left_out(path):
            continue
        parts = [part for part in path.split("/") if part]
        if ".." in parts or not parts:
            raise EngineError(f"the list of changed files contains {path!r}")
        place = folder.joinpath(*parts)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if removed:
            os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))
            continue
        with read(path) as tar:
            unpack_written(tar, place.parent, skip=None)
