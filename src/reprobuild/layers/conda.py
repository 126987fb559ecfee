"""Locked conda packages → layers: py-rattler links them into a prefix, and the prefix is written as layers.

What differs by host or hour is left out: modes beyond "executable", time stamps in bytecode, the paths of
this machine in ``conda-meta``. Scripts that run at installation are not run, as py-rattler has it by default.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard
from packaging.utils import canonicalize_name

from ..errors import BuildError
from ..fetch.store import Store
from ..host import leftovers
from ..host.console import Console
from ..host.home import storage_errors
from ..lock.model import CondaPackage, Lock
from ..oci.tar_writer import LayerWriter, parents
from ..request.profiles import SITE_PREFIX
from . import bytecode_stream

STAGE = "+conda"
"""The name of the compiler's archive of conda's modules; no Python package can be called that."""

_META_KEYS = (
    *("name", "version", "build", "build_number", "depends", "constrains", "license", "md5", "size"),
    *("subdir", "timestamp", "noarch", "files", "paths_data"),
)
_CHUNK = 1 << 20


def link(lock: Lock, store: Store, scratch: Path, console: Console) -> Path:
    """Install the locked packages into a fresh prefix below ``scratch`` and return it. No network is used.

    Their bytes were held against the lock when the store took them. Raises `BuildError`.
    """
    import rattler  # noqa: PLC0415 -- a fifth of a second, which other builds need not wait for

    archives, prefix = scratch / "conda", scratch / "conda-prefix"

    async def install() -> None:
        await rattler.install(
            [await _record(file, package, rattler) for file, package in files.items()],
            prefix,
            cache_dir=scratch / "conda-cache",
            alternative_target_prefix=SITE_PREFIX,
            execute_link_scripts=False,
            show_progress=False,
        )

    with storage_errors(scratch):
        archives.mkdir()
        files = {archives / package.filename: package for package in lock.conda}
        for file, package in files.items():
            file.symlink_to(store.path(package.sha256))
        try:
            asyncio.run(install())
        except BuildError:
            raise
        except Exception as error:  # noqa: BLE001 -- py-rattler has a class a cause, and no common one
            reason = " ".join(str(error).split())
            raise BuildError(f"the conda packages cannot be installed: {reason}") from None
        shutil.rmtree(scratch / "conda-cache", ignore_errors=True)
    _refuse_second_copies(prefix, lock)
    _name_scripts(prefix, console)
    return prefix


def _refuse_second_copies(prefix: Path, lock: Lock) -> None:
    """Refuse a Python package that is locked as a wheel too.

    Only the linked files tell: conda may call a package otherwise than pip does.
    """
    wheels = {package.name: package.wheel.filename for package in lock.python}
    for info in sorted(prefix.glob("lib/python3*/site-packages/*.dist-info")):
        name = canonicalize_name(info.name.removesuffix(".dist-info").rpartition("-")[0])
        if name in wheels:
            raise BuildError(
                f"{name} would be there twice: {info.name} from conda, and the wheel {wheels[name]}",
                hint="take it out of the packages for pip, or name the conda package that is called like it",
            )


def _name_scripts(prefix: Path, console: Console) -> None:
    """Say what conda would run, at installation and in every shell. A channel's list does not tell it."""
    found = sorted(p.name[1:] for p in prefix.glob("bin/.*-link.sh"))
    if found:
        console.warn(
            f"scripts of conda packages are not run, since they could do anything: {', '.join(found)}"
        )
    found = sorted(p.name for p in prefix.glob("etc/conda/activate.d/*.sh"))
    if found:
        console.warn(
            f"an image is not activated, so what these set is missing in it: {', '.join(found)} (of "
            f"{SITE_PREFIX}/etc/conda/activate.d)"
        )


def write_packages(prefix: Path, packages: Sequence[CondaPackage], out: LayerWriter) -> None:
    """Write the files of some packages as a layer, sorted by path."""
    files: dict[str, Path | bytes] = {}
    for package in packages:
        stem = package.filename.removesuffix(".conda").removesuffix(".tar.bz2")
        meta = json.loads((prefix / f"conda-meta/{stem}.json").read_bytes())
        files |= {path: prefix / path for path in meta["files"]}
        files[f"conda-meta/{stem}.json"] = _meta(meta, package)
    top = SITE_PREFIX.lstrip("/")
    for folder in parents([f"{top}/{path}" for path in files]):
        out.folder(folder)
    for path, what in sorted(files.items()):
        _write(f"{top}/{path}", what, out)


def stage_sources(roots: Sequence[Path], site: str, stage: Path) -> Mapping[str, int]:
    """Lay aside the modules of some layers that have no bytecode yet, in the compiler's stage.

    Returns the bytes of each by its path in the image, without a leading slash. Links are not followed.
    """
    found: dict[str, Path] = {}
    for root in roots:
        top = leftovers.folder(root, site)
        if top is None:
            continue
        paths = {path for path, status in leftovers.walk(top) if stat.S_ISREG(status.st_mode)}
        compiled = {_source_of(path) for path in paths if path.endswith(".pyc")}
        found |= {f"{site}/{p}": root for p in paths if p.endswith(".py") and p not in compiled}
    sources = bytecode_stream.Sources((stage / f"{STAGE}{bytecode_stream.SOURCES}").open("wb"))
    try:
        for path, root in sorted(found.items()):
            with leftovers.opened(root, path) as file:
                sources.add(path, file.read())
    finally:
        sources.close()
    return sources.sizes


def _source_of(compiled: str) -> str:
    """Return the source of ``a/__pycache__/b.cpython-311.pyc``: ``a/b.py``; nothing for what is elsewhere."""
    folder, _, name = compiled.rpartition("/")
    if folder.rpartition("/")[2] != "__pycache__":
        return ""
    return f"{folder.removesuffix('__pycache__')}{name.partition('.cpython-')[0]}.py"


def write_bytecode(stage: Path, sent: Mapping[str, int], version: str, out: LayerWriter) -> None:
    """Write what the compiler has left in the stage, and the mark by which conda knows a prefix.

    ``sent`` is what `stage_sources` returned, ``version`` that of Python (``3.11``). Raises `BuildError`.
    """
    compiled = bytecode_stream.Bytecode(stage, {STAGE: sent}, version)
    history = f"{SITE_PREFIX.lstrip('/')}/conda-meta/history"
    paths = sorted([*compiled.paths(), history])
    for folder in parents(paths):
        out.folder(folder)
    for path in paths:
        content = b"" if path == history else compiled.read(path)
        out.file(path, 0o644, len(content), [content])


def read_member(archive: Path, filename: str, ending: str) -> bytes | None:
    """Return a file of a conda package, by the end of its path; None when there is none."""
    if filename.endswith(".conda"):
        with zipfile.ZipFile(archive) as outer:
            inner = next(name for name in outer.namelist() if name.startswith("pkg-"))
            with outer.open(inner) as packed, zstandard.ZstdDecompressor().stream_reader(packed) as plain:
                return _member(tarfile.open(fileobj=plain, mode="r|"), ending)
    return _member(tarfile.open(archive, "r:bz2"), ending)


def _member(tar: tarfile.TarFile, ending: str) -> bytes | None:
    with tar:
        for member in tar:
            if member.isfile() and member.name.endswith(ending):
                file = tar.extractfile(member)
                return None if file is None else file.read()
    return None


async def _record(file: Path, package: CondaPackage, rattler: Any) -> Any:
    try:
        record = await rattler.RepoDataRecord.from_package_archive(file)
    except Exception as error:  # noqa: BLE001 -- as in `link`
        reason = " ".join(str(error).split())
        raise BuildError(f"{package.filename}: not a conda package: {reason}") from None
    if (record.name.normalized, str(record.version)) != (package.name, package.version):
        raise BuildError(
            f"{package.filename}: says that it is {record.name.normalized} {record.version}, and the lock "
            f"has it as {package.name} {package.version}"
        )
    record.url = file.as_uri()
    return record


def _meta(meta: dict[str, Any], package: CondaPackage) -> bytes:
    kept = {key: meta[key] for key in _META_KEYS if key in meta}
    channel = package.url.rpartition(f"/{package.subdir}/")[0]
    kept |= {"fn": package.filename, "url": package.url, "channel": channel, "sha256": package.sha256}
    kept["files"] = sorted(kept["files"])
    kept["paths_data"]["paths"].sort(key=lambda each: each["_path"])
    return (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode()


def _write(path: str, what: Path | bytes, out: LayerWriter) -> None:
    if isinstance(what, bytes):
        out.file(path, 0o644, len(what), [what])
    elif what.is_symlink():
        out.link(path, str(what.readlink()))
    elif what.is_dir():
        out.folder(path)
    else:
        size = what.stat().st_size
        mode = 0o755 if os.access(what, os.X_OK) else 0o644
        out.file(path, mode, size, _bytecode(what) if path.endswith(".pyc") else _chunks(what))


def _bytecode(file: Path) -> Iterator[bytes]:
    """Make bytecode "unchecked-hash" (PEP 552): the time stamp that it else carries is not the layer's."""
    content = file.read_bytes()
    if content[4:8] == bytes(4):
        content = content[:4] + (1).to_bytes(4, "little") + bytes(8) + content[16:]
    yield content


def _chunks(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK):
            yield chunk
