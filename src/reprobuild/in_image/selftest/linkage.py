"""Shared objects (ELF) and the libraries that they need: read from their headers, never loaded."""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME = 1, 5, 14
SYSTEM_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
MOST_DYNAMIC = 1 << 20
"""Bytes of a dynamic section, or of a name in it, that are read at most."""

DRIVER = re.compile(r"lib(cuda|nvidia-[a-z0-9-]+|nvcuvid|nvoptix|hsa-runtime64|amdhip64)\.so(\.[0-9.]+)?")
"""Libraries of a GPU's driver, which the host brings."""

CUDA_MAJOR = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc)\.so\.([0-9]+)(?:\..*)?")
"""Libraries of CUDA whose number is that of CUDA itself."""

DEBIAN_EXCEPTIONS = {
    **dict.fromkeys(("glib-2.0", "gthread-2.0", "gobject-2.0", "gio-2.0", "gmodule-2.0"), "libglib2.0-0"),
    "GLU": "libglu1-mesa",
    "asound": "libasound2",
    "lzma": "liblzma5",
    "EGL": "libegl1",
}
"""Libraries, without lib and number, whose Debian package is not named by the rule of Debian's policy."""


@dataclass(frozen=True)
class SharedObject:
    """What a shared object says of itself."""

    path: str
    soname: str
    needed: tuple[str, ...]


def shared_object(path: str) -> SharedObject | None:
    """Return what a file's dynamic section names; None where it has none, or is no 64-bit ELF file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- faster at 10,000 files
            entries = dynamic_entries(file)
            if entries is None:
                return None
            names = [(tag, text) for tag, text in entries if tag in (DT_NEEDED, DT_SONAME)]
    except (OSError, OverflowError, struct.error, ValueError):
        return None
    soname = next((text for tag, text in names if tag == DT_SONAME), Path(path).name)
    return SharedObject(path, soname, tuple(text for tag, text in names if tag == DT_NEEDED))


def dynamic_entries(file: BinaryIO) -> list[tuple[int, str]] | None:
    """Return tag and text of the entries of a dynamic section that name a library."""
    head = file.read(64)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return None
    offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    file.seek(offset)
    table = file.read(size * count)
    segments = [struct.unpack_from("<IIQQQQ", table, index * size) for index in range(count)]
    dynamic = next((segment for segment in segments if segment[0] == PT_DYNAMIC), None)
    if dynamic is None:
        return None
    file.seek(dynamic[2])
    raw = file.read(min(dynamic[5], MOST_DYNAMIC))
    pairs = list(struct.iter_unpack("<QQ", raw[: len(raw) // 16 * 16]))
    strings = next((value for tag, value in pairs if tag == DT_STRTAB), None)
    loaded = [
        s for s in segments if s[0] == PT_LOAD and strings is not None and s[3] <= strings < s[3] + s[5]
    ]
    if strings is None or not loaded:
        return None  # as where debug information was taken out into a file of its own
    start = loaded[0][2] + strings - loaded[0][3]
    found = []
    for tag, value in pairs:
        if tag in (DT_NEEDED, DT_SONAME):
            file.seek(start + value)
            found.append((tag, file.read(4096).split(b"\0")[0].decode("utf-8", "replace")))
        if tag == 0:
            break
    return found


def shared_objects(folder: str) -> Iterator[SharedObject]:
    """Give the shared objects below a folder, in the order of their paths."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".so") or ".so." in name:
                found = shared_object(os.path.join(place, name))  # noqa: PTH118 -- as above
                if found is not None:
                    yield found


@lru_cache(maxsize=None)
def installed_objects() -> tuple[SharedObject, ...]:
    """Return the shared objects of the environment."""
    return tuple(shared_objects(sys.prefix))


@lru_cache(maxsize=None)
def library_names() -> frozenset[str]:
    """Return the names of the libraries in the environment, and where the system keeps its own."""
    names = {name for each in installed_objects() for name in (each.soname, Path(each.path).name)}
    for folder in SYSTEM_FOLDERS:
        for _, _, files in os.walk(folder):
            names.update(name for name in files if ".so" in name)
    return frozenset(names)


def missing(objects: Sequence[SharedObject]) -> list[str]:
    """Return the libraries that shared objects need and nothing in the image has; not those of a driver."""
    needed = {name for each in objects for name in each.needed if not DRIVER.fullmatch(name)}
    return sorted(name for name in needed if "/" not in name and name not in library_names())


def debian_package(library: str) -> str:
    """Return the Debian package that has a library, by the rule of Debian's policy (8.1) for its name."""
    stem, _, number = re.sub("^lib", "", library).partition(".so")
    if stem in DEBIAN_EXCEPTIONS:
        return DEBIAN_EXCEPTIONS[stem]
    number = number.lstrip(".")
    dash = "-" if stem[-1:].isdigit() and number else ""
    return f"lib{stem}{dash}{number}".lower().replace("_", "-")
