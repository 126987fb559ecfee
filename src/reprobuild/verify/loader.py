"""Libraries that the dynamic linker would load in place of the lock's. Pure.

The rule is the linker's own order (ld.so(8)): LD_PRELOAD and ``/etc/ld.so.preload``, a library's RUNPATH,
LD_LIBRARY_PATH, ``/etc/ld.so.cache``, the default folders; in each folder first those for the processor. By
that order a name that a locked library has must lead to that library. Folders of ``/etc/ld.so.conf`` count:
NVIDIA's container runtime runs ldconfig(8) when a container starts. Variables are judged in `commands`.
"""

from __future__ import annotations

import fnmatch
import hashlib
import posixpath
import re
import struct
from collections.abc import Iterator, Mapping

from .compare import Difference
from .context import Context
from .links import folders, resolve

_CONF = "etc/ld.so.conf"
_MOST_INCLUDED = 200

_LOADED_BY_NAME = re.compile(
    r"libnccl-(net|tuner|profiler|env)\b[^/]*\.so[.\d]*|lib(cuda|nvidia-ptxjitcompiler|nvidia-nvvm)\.so[.\d]*"
)
"""Plug-ins that NCCL loads where the linker finds them (NCCL, "Environment Variables"), and the driver, which
is the host's."""

PRELOAD, CACHE = "etc/ld.so.preload", "etc/ld.so.cache"

_DEFAULTS = ("lib", "lib64", "usr/lib", "usr/lib64")
_TRIPLETS = ("x86_64-linux-gnu", "aarch64-linux-gnu")
_LEGACY = frozenset(
    (
        *("aarch64", "asimd", "atomics", "avx512_1", "fp", "haswell", "i386", "i486", "i586", "i686", "sse2"),
        *("tls", "x86_64", "xeon_phi"),
    )
)
"""Folders for a processor's features before glibc 2.37; those after it are below ``glibc-hwcaps``."""

_EMPTY = hashlib.sha256().hexdigest()

_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""What a merged Debian has as links to the same name below ``/usr``; the linker itself is named by one."""

_MAGIC, _OLD_MAGIC = b"glibc-ld.so.cache1.1", b"ld.so-1.7.0"


def is_library(path: str) -> bool:
    """Whether the linker could be asked for a file by its name."""
    name = path.rpartition("/")[2]
    return name.endswith(".so") or ".so." in name


def is_read_by_linker(path: str) -> bool:
    """Whether `libraries` needs the content of a file, by its path without a leading slash."""
    return path == CACHE or (fnmatch.fnmatchcase(path, "etc/ld.so.conf*"))


def libraries(context: Context) -> Iterator[Difference]:
    """Yield files that the linker would load and the image of the lock does not have."""
    files, named = context.tree.files, context.named
    if PRELOAD in files:
        yield Difference(f"/{PRELOAD}", "runs at start", "", f"/{PRELOAD}")
    if context.lock.base is None:
        for name in _ROOT_LINKS:
            found = files.get(name)
            if found is not None and f"usr/{name}" in named and resolve(name, files) != f"usr/{name}":
                yield Difference(f"/{name}", "shadows", f"/usr/{name}", found.content)
    locked: dict[str, set[str]] = {}
    for path, record in named.items():
        if record.kind != "dir" and is_library(path):
            locked.setdefault(path.rpartition("/")[2], set()).add(resolve(path, files) or path)
    for path in _unread(context):
        yield Difference(f"/{path}", "runs at start", "", "it cannot be read")
    yield from _cached(context, locked)
    yield from _found(context, locked)
    yield from _redirected(context)


def _found(context: Context, locked: Mapping[str, set[str]]) -> Iterator[Difference]:
    """Added files with a locked library's name in a folder in which the linker looks."""
    files = context.tree.files
    asked = {*folders(context.env.get("LD_LIBRARY_PATH", "").replace(";", ":"), context.start, files)}
    searched = {path.rpartition("/")[0] for path in context.named if is_library(path)} | asked
    last = _default_folders(context)
    searched |= last
    stems = {name.partition(".so")[0]: name for name in sorted(locked)}
    for path in context.added:
        folder, _, name = path.rpartition("/")
        is_empty = files[path].content == _EMPTY  # NVIDIA's runtime leaves such files where it mounts its own
        if _LOADED_BY_NAME.fullmatch(name) and _above_processors(folder) in searched and not is_empty:
            yield Difference(f"/{path}", "runs at start", "", f"/{path}")
            continue
        if files[path].kind == "link" and _above_processors(path) in searched and _is_for_processors(path):
            yield Difference(f"/{path}", "shadows", "", f"/{path}")
            continue
        base = _above_processors(folder)
        if base not in searched or not is_library(path):
            continue
        first = name if name in locked else stems.get(name.partition(".so")[0]) if base in asked else None
        if base in last - asked and first is not None and not _is_found_there(first, locked, last):
            continue
        target = resolve(path, files)
        if first is not None and (target is None or target not in locked[first]):
            yield Difference(f"/{path}", "shadows", f"/{min(locked[first])}", f"/{path}")


def _default_folders(context: Context) -> set[str]:
    """Return the folders that the linker searches last, links followed."""
    every = (each for folder in _DEFAULTS for each in (folder, *(f"{folder}/{name}" for name in _TRIPLETS)))
    return {resolve(each, context.tree.files) or each for each in every} | {*_configured(context)}


def _included(context: Context) -> Mapping[str, list[list[str]]]:
    """Return the lines of ldconfig's files as words: of `_CONF` and of what it includes, by path."""
    files, kept = context.tree.files, context.tree.kept
    found: dict[str, list[list[str]]] = {}
    left = [_CONF] if _CONF in files else []
    while left and len(found) < _MOST_INCLUDED:
        path = left.pop()
        text = kept.get(path, kept.get(resolve(path, files) or "", b"?")).decode("utf-8", "replace")
        lines = (re.sub(r"#.*", "", line).replace(",", " ").split() for line in text.splitlines())
        found[path] = [words for words in lines if words]
        for pattern in (each for word, *more in found[path] if word == "include" for each in more):
            names = fnmatch.filter(files, posixpath.join("/etc", pattern).lstrip("/"))
            left += [name for name in names if name not in found and files[name].kind != "dir"]
    return found


def _configured(context: Context) -> Iterator[str]:
    """Yield the folders that ldconfig's files name, links followed."""
    for word, *_ in (words for lines in _included(context).values() for words in lines):
        if word.startswith("/") and (folder := resolve(word.partition("=")[0], context.tree.files)):
            yield folder


def _unread(context: Context) -> Iterator[str]:
    """Yield ldconfig's files whose content is not known: links, or files elsewhere than below ``/etc``."""
    every = _included(context)
    if len(every) >= _MOST_INCLUDED:
        yield _CONF
    yield from (path for path, lines in every.items() if lines == [["?"]])


def _is_found_there(name: str, locked: Mapping[str, set[str]], last: set[str]) -> bool:
    """Return whether a locked library is found by the cache or the default folders.

    One beside the libraries that need it, as PyTorch's libgomp, is found before by their RUNPATH.
    """
    return any(path.rpartition("/")[0] in last for path in locked[name])


def _is_for_processors(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name == "glibc-hwcaps" or name in _LEGACY or folder.endswith("/glibc-hwcaps")


def _above_processors(folder: str) -> str:
    """Return the folder to which one for processors belongs; others are their own."""
    while _is_for_processors(folder):
        folder = folder.rpartition("/")[0]
    return folder


def _redirected(context: Context) -> Iterator[Difference]:
    """Locked links that lead to something else, by way of a link that the manifest does not name."""
    files, named = context.tree.files, context.named
    for path, record in named.items():
        if record.kind == "link" and files.get(path) == record and (is_library(path) or context.runs(path)):
            target = resolve(path, files)
            if target is not None and target in files and files[target].kind != "dir" and target not in named:
                yield Difference(f"/{path}", "shadows", f"/{path}", f"/{target}")


def _cached(context: Context, locked: Mapping[str, set[str]]) -> Iterator[Difference]:
    files = context.tree.files
    if CACHE not in files:
        return
    try:
        entries = list(_entries(context.tree.kept[CACHE]))
    except (KeyError, ValueError, struct.error):
        yield Difference(f"/{CACHE}", "runs at start", "", "it cannot be read")
        return
    last = _default_folders(context)
    for name, path in sorted({*entries}):
        if not path.startswith("/"):
            yield Difference(f"/{CACHE}", "runs at start", "", f"{name} => {path}")
            continue
        target = resolve(path, files)
        beside = target is not None and target.rpartition("/")[0] in last
        if name in locked and beside and not _is_found_there(name, locked, last):
            continue
        if name in locked and target is not None and target in files and target not in locked[name]:
            yield Difference(f"/{CACHE}", "shadows", f"/{min(locked[name])}", path)


def _entries(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield name and path of each library in a cache (glibc, elf/cache.c and sysdeps/generic/dl-cache.h)."""
    start = 0
    if data.startswith(_OLD_MAGIC):
        # Behind the table of the old format, at the alignment of the new one's 64-bit fields.
        [old] = struct.unpack_from("<I", data, 12)
        start = (16 + 12 * old + 7) // 8 * 8
    if not data.startswith(_MAGIC, start):
        raise ValueError("not a cache of the dynamic linker")
    [count] = struct.unpack_from("<I", data, start + len(_MAGIC))
    first = start + 48
    if count > (len(data) - first) // 24:
        raise ValueError("it is cut short")
    for number in range(count):
        key, value = struct.unpack_from("<II", data, first + 24 * number + 4)
        yield _text(data, start + key), _text(data, start + value)


def _text(data: bytes, start: int) -> str:
    end = data.index(b"\0", start, start + 4096)
    return data[start:end].decode("utf-8", "surrogateescape")
