"""Layers of conda packages: py-rattler links them into a prefix, which is written as layers.

What differs by host or hour is left out: modes beyond "executable", time stamps in bytecode, the paths of
this machine in ``conda-meta``. Scripts that run at installation are not run, as py-rattler has it by default.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from packaging.utils import canonicalize_name
from requests.utils import DEFAULT_CA_BUNDLE_PATH

from ..errors import BuildError
from ..fetch import conda_archive
from ..fetch.plain_path import is_plain
from ..fetch.store import Store
from ..host import process, sandbox, untrusted_files
from ..host.console import Console
from ..host.home import raise_if_full, storage_errors
from ..host.own_program import own_program
from ..host.workers import workers
from ..lock.model import Lock
from ..lock.packages import CondaPackage
from ..oci.tar_writer import LayerWriter, parents
from ..request.image_layout import SITE_PREFIX
from . import bytecode_stream
from .allowed_paths import refuse_own_names
from .split_large import cut

STAGE = "+conda"
"""The name of the compiler's archive of conda's modules; no Python package can be called that."""

_META_KEYS = (
    *("name", "version", "build", "build_number", "depends", "constrains", "license", "md5", "size"),
    *("subdir", "timestamp", "noarch", "files", "paths_data"),
)
_CHUNK = 1 << 20
_AT = "/link"
_MOST_SECONDS = 3600
"""For linking all packages; the largest environments take minutes."""
_DIST_INFO = re.compile(r"lib/python3[^/]*/site-packages/([^/]+)\.dist-info")


@dataclass(frozen=True, slots=True)
class Linked:
    """A prefix in which the locked packages are linked."""

    prefix: Path
    paths: Mapping[str, os.stat_result]
    """Its entries by relative path. None is outside the prefix, unless a link is followed."""

    def meta(self, package: CondaPackage) -> dict[str, Any]:
        """Return the package's file in ``conda-meta``. Raises `BuildError` where it is not true."""
        path = f"conda-meta/{_stem(package)}.json"
        try:
            with untrusted_files.opened(self.prefix, path) as file:
                found = json.loads(file.read(conda_archive.MOST_DOCUMENT))
            files = found["files"]
            found["paths_data"]["paths"].sort(key=lambda each: each["_path"])
            if all(file in self.paths and is_plain(file) for file in files):
                return dict(found)
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise BuildError(f"{package.filename}: {path} does not list what was linked")


def link(lock: Lock, store: Store, scratch: Path, console: Console) -> Linked:
    """Install the locked packages into a fresh prefix below ``scratch`` and return it.

    Their bytes were held against the lock when the store took them, and their paths are before any is linked.
    That is done in a sandbox, without network, that has nothing of this machine but py-rattler, the Python
    that runs it, and the packages. Raises `BuildError`, `HostError`.
    """
    with workers(len(os.sched_getaffinity(0))) as pool:
        held = pool.map(lambda p: conda_archive.hold(store.path(p.sha256), p), lock.conda)
        contents = {p.filename: found for p, found in zip(lock.conda, held, strict=True)}
    conda_archive.refuse_detours(contents, lock.request.python)
    with storage_errors(scratch):
        folder, bundle, root = scratch / "conda", scratch / "conda-bundle", scratch / "conda-root"
        for each in (folder, bundle, root):
            each.mkdir()
        (scratch / "linker.py").write_bytes(own_program("link_conda.py").read_bytes())
        binds = [*_python(root), sandbox.Bind(source=scratch / "linker.py", destination=f"{_AT}/linker.py")]
        archives = {f"{_AT}/archives/{package.filename}": package for package in lock.conda}
    binds += [sandbox.Bind(source=store.path(p.sha256), destination=at) for at, p in archives.items()]
    # py-rattler makes an HTTP client before it knows that it needs none, and that wants some certificate.
    binds += [sandbox.Bind(source=Path(DEFAULT_CA_BUNDLE_PATH), destination=f"{_AT}/ca.pem")]
    binds += [sandbox.Bind(source=folder, destination=f"{_AT}/out", writable=True)]
    python = [str(_program()), "-I", "-S", "-B", f"{_AT}/linker.py"]
    task = sandbox.Task(
        argv=[*python, f"{_AT}/out", SITE_PREFIX, f"{_AT}/packages", *archives],
        env={"HOME": "/tmp", "LC_ALL": "C.UTF-8", "SSL_CERT_FILE": f"{_AT}/ca.pem"},  # noqa: S108 -- in the sandbox
        binds=binds,
    )
    slow = "run again on a quieter machine, or with fewer packages"
    with process.named_when_stopped(BuildError, "the conda packages were not linked", slow=slow):
        done = sandbox.run(bundle, [root], task, timeout=_MOST_SECONDS)
    with storage_errors(scratch):
        if done.returncode != 0:
            said = process.tail(done.stderr)
            raise_if_full(said, scratch)
            raise BuildError(f"the conda packages cannot be linked: {said}")
        return _linked(folder, lock, console)


def _linked(folder: Path, lock: Lock, console: Console) -> Linked:
    """Return the linker's output, verified against the lock."""
    with untrusted_files.opened(folder, "said.json") as file:
        said = json.loads(file.read(conda_archive.MOST_DOCUMENT))
    if "error" in said:
        raise_if_full(said["error"], folder)
        raise BuildError(f"the conda packages cannot be installed: {said['error']}")
    if said["packages"] != [[p.name, p.version, p.build] for p in lock.conda]:
        raise BuildError(f"the conda packages are not those of the lock: {said['packages']}")
    found = Linked(folder / "prefix", dict(untrusted_files.walk(folder / "prefix")))
    for path, status in found.paths.items():
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            raise BuildError(f"{path!r}: the conda packages created neither a file, a folder nor a link")
    top = SITE_PREFIX.lstrip("/")
    refuse_own_names((f"{top}/{path}" for path in sorted(found.paths)), "the conda packages")
    _refuse_second_copies(found.paths, lock)
    _name_scripts(found.paths, console)
    return found


def _python(root: Path) -> list[sandbox.Bind]:
    """Return what of this machine its Python needs to run py-rattler; the links for it go into a root."""
    for name in ("bin", "lib", "lib32", "lib64"):
        host = Path("/", name)
        if host.is_symlink():
            (root / name).symlink_to(host.readlink())
    prefix = Path(sys.base_prefix)
    needed = [Path("/usr"), *(Path("/", name) for name in ("lib", "lib32", "lib64"))]
    needed += [Path("/nix/store"), _program(), prefix / "lib", prefix / sys.platlibdir]
    taken: list[Path] = []
    for path in needed:
        if path.exists() and not (path.is_symlink() or any(path.is_relative_to(above) for above in taken)):
            taken.append(path)
    binds = [sandbox.Bind(source=path, destination=str(path)) for path in taken]
    spec = importlib.util.find_spec("rattler")
    assert spec is not None
    assert spec.origin is not None
    return [*binds, sandbox.Bind(source=Path(spec.origin).parent, destination=f"{_AT}/packages/rattler")]


def _program() -> Path:
    """Return this Python itself, not the link to it in a virtual environment."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))


def _refuse_second_copies(paths: Iterable[str], lock: Lock) -> None:
    """Refuse a Python package that is locked as a wheel too.

    Only the linked files tell: conda may call a package otherwise than pip does.
    """
    wheels = {package.name: package.wheel.filename for package in lock.python}
    for path in sorted(paths):
        if not (match := _DIST_INFO.fullmatch(path)):
            continue
        name = canonicalize_name(match[1].rpartition("-")[0])
        if name in wheels:
            raise BuildError(
                f"{name} would be installed twice: as {match[1]}.dist-info by conda, and as the wheel "
                f"{wheels[name]}",
                hint="remove it from the packages for pip, or name the conda package of that name",
            )


def _name_scripts(paths: Iterable[str], console: Console) -> None:
    """Warn of the scripts that conda runs at installation and in every shell; channels do not list them."""
    paths = sorted(paths)
    found = [match[1] for path in paths if (match := re.fullmatch(r"bin/\.([^/]*-link\.sh)", path))]
    if found:
        console.warn(
            f"scripts of conda packages are not run, since they could do anything: {', '.join(found)}"
        )
    found = [m[1] for path in paths if (m := re.fullmatch(r"etc/conda/activate\.d/([^/]*\.sh)", path))]
    if found:
        console.warn(
            f"an image is not activated, so what these scripts set is missing in it: {', '.join(found)} (in "
            f"{SITE_PREFIX}/etc/conda/activate.d)"
        )


def write_packages(
    linked: Linked, packages: Sequence[CondaPackage], out: LayerWriter, part: int = 0, parts: int = 1
) -> None:
    """Write the files of some packages as a layer, sorted by path, or of one its part of several."""
    files: dict[str, bytes | None] = {}
    for package in packages:
        meta = linked.meta(package)
        files |= dict.fromkeys(meta["files"])
        files[f"conda-meta/{_stem(package)}.json"] = _meta(meta, package)
    if parts > 1:
        made = [path for path, content in files.items() if content is not None]
        parted = cut({path: linked.paths[path].st_size for path in files}, made, parts)
        files = {path: content for path, content in files.items() if parted[path] == part}
    top = SITE_PREFIX.lstrip("/")
    for folder in parents([f"{top}/{path}" for path in files]):
        out.folder(folder)
    for path, content in sorted(files.items()):
        if content is None:
            _write(linked, path, f"{top}/{path}", out)
        else:
            out.file(f"{top}/{path}", 0o644, len(content), [content])


def stage_sources(roots: Sequence[Path], site: str, stage: Path) -> Mapping[str, int]:
    """Copy the modules of these layers that lack bytecode to the compiler's staging folder.

    Returns the bytes of each by its path in the image, without a leading slash. Links are not followed.
    """
    found: dict[str, Path] = {}
    for root in roots:
        top = untrusted_files.folder(root, site)
        if top is None:
            continue
        paths = {path for path, status in untrusted_files.walk(top) if stat.S_ISREG(status.st_mode)}
        compiled = {_source_of(path) for path in paths if path.endswith(".pyc")}
        found |= {f"{site}/{p}": root for p in paths if p.endswith(".py") and p not in compiled}
    archive = (stage / f"{STAGE}{bytecode_stream.SOURCES}").open("wb")
    with closing(bytecode_stream.Sources(archive)) as sources:
        for path, root in sorted(found.items()):
            with untrusted_files.opened(root, path) as file:
                sources.add(path, file.read())
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


def _meta(meta: dict[str, Any], package: CondaPackage) -> bytes:
    kept = {key: meta[key] for key in _META_KEYS if key in meta}
    channel = package.url.rpartition(f"/{package.subdir}/")[0]
    kept |= {"fn": package.filename, "url": package.url, "channel": channel, "sha256": package.sha256}
    kept["files"] = sorted(kept["files"])
    return (json.dumps(kept, indent=1, sort_keys=True) + "\n").encode()


def _write(linked: Linked, path: str, target: str, out: LayerWriter) -> None:
    mode = linked.paths[path].st_mode
    if stat.S_ISLNK(mode):
        out.link(target, str((linked.prefix / path).readlink()))
    elif stat.S_ISDIR(mode):
        out.folder(target)
    else:
        with untrusted_files.opened(linked.prefix, path) as file:
            size = linked.paths[path].st_size
            chunks = _bytecode(file) if path.endswith(".pyc") else iter(lambda: file.read(_CHUNK), b"")
            out.file(target, 0o755 if mode & 0o111 else 0o644, size, chunks)


def _bytecode(file: IO[bytes]) -> Iterator[bytes]:
    """Make bytecode "unchecked-hash" (PEP 552): the time stamp that it else carries is not the layer's."""
    content = file.read()
    if content[4:8] == bytes(4):
        content = content[:4] + (1).to_bytes(4, "little") + bytes(8) + content[16:]
    yield content


def _stem(package: CondaPackage) -> str:
    return package.filename.removesuffix(".conda").removesuffix(".tar.bz2")
