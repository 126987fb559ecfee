"""What is installed and loaded: versions, files, CUDA's libraries."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

from .exact import must_be
from .libraries import torch
from .location import image_file
from .names import CUDA_LIBRARY
from .outcomes import Failed, NotRun, Results, note
from .registry import SETTING, check


@check(SETTING, order=155)
def setting_versions(_: str) -> Results:
    """Installed packages have the versions of the image's constraints."""
    constraints = image_file("constraints.txt")
    if not constraints.exists():
        raise NotRun(f"{constraints} does not exist")
    metadata = importlib.import_module("importlib.metadata")
    lines = []
    for name, wanted in re.findall(
        r"^([\w.-]+) *== *([^\s;#]+)", constraints.read_text("utf-8"), re.MULTILINE
    ):
        try:
            got = metadata.version(name)
        except metadata.PackageNotFoundError:
            got = "not installed"
        # "2.4.1.*" is a package of conda's, whose builds may call themselves 2.4.1.post303 to pip, and whose
        # names are not all known to pip.
        conda = wanted.endswith(".*")
        if conda and (got == "not installed" or re.match(re.escape(wanted[:-2]) + "(?![0-9])", got)):
            continue
        if got != wanted:
            lines.append({"what": name, "expected": wanted, "got": got})
    if lines:
        raise Failed(f"other versions: {', '.join(line['what'] for line in lines)}", lines)
    return None


def changed_files(wanted: Callable[[str], bool]) -> Results:
    """Compare files with the manifest of the image, those whose path is wanted; raises `Failed`, `NotRun`."""
    manifest = image_file("manifest.tsv")
    if not manifest.exists():
        raise NotRun(f"{manifest} does not exist")
    lines, count = [], 0
    for line in manifest.read_text("utf-8", "surrogateescape").splitlines():
        kind, _, content, path = line.split("\t")
        if kind != "file" or not wanted(path):
            continue
        count += 1
        try:
            with open(path, "rb") as file:  # noqa: PTH123 -- faster at 10,000 files
                digest = hashlib.sha256()
                while chunk := file.read(1 << 18):  # hashlib.file_digest is of Python 3.11
                    digest.update(chunk)
                got = digest.hexdigest()
        except OSError as error:
            got = error.strerror or "cannot be read"
        if got != content:
            lines.append({"what": path, "expected": content, "got": got})
    if lines:
        raise Failed(f"{len(lines)} of {count} files are not those that were locked", lines[:20])
    note(f"{count} files")
    return None


@check(SETTING, order=160)
def setting_files(_: str) -> Results:
    """The Python files of torch and NumPy are those of the image's manifest."""
    inside = re.compile(r".*/site-packages/(torch|numpy)/.*\.pyc?")
    return changed_files(lambda path: inside.fullmatch(path) is not None)


@check(SETTING, part="full", order=165)
def setting_files_all(_: str) -> Results:
    """All files of the environment are those of the image's manifest."""
    return changed_files(lambda path: path.startswith(sys.prefix + "/"))


def loaded_files() -> list[str]:
    """Return the files that this process has mapped, by path; one that is deleted since keeps its path."""
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    return sorted({line.split(None, 5)[5].partition(" (deleted)")[0] for line in lines if "/" in line})


# This late because libraries are loaded when they are first used.
@check(SETTING, order=950)
def one_cuda_copy(_: str) -> Results:
    """Each CUDA library that the process has loaded is there once, and is the locked packages' own."""
    copies: dict[str, list[str]] = {}
    for path in loaded_files():
        match = CUDA_LIBRARY.fullmatch(Path(path).name)
        if match:
            copies.setdefault(match[1], []).append(path)
    if not copies:
        raise NotRun("this build of torch loads no CUDA library")
    folders: dict[str, list[str]] = {}
    for path in sorted(path for found in copies.values() for path in found):
        folders.setdefault(str(Path(path).parent), []).append(Path(path).name)
    for folder, names in folders.items():
        note(f"from {folder}: {', '.join(names)}")
    twice = {name: found for name, found in copies.items() if len(found) > 1}
    if twice:
        detail = [
            {"what": name, "expected": "one copy", "got": " ".join(found)} for name, found in twice.items()
        ]
        raise Failed(f"loaded twice: {', '.join(twice)}", detail)
    strays = {name: found[0] for name, found in copies.items() if not found[0].startswith(sys.prefix + "/")}
    # An image that reprobuild did not build may have all of them from one other place, such as /usr/local.
    if strays and (len(strays) < len(copies) or image_file("manifest.tsv").exists()):
        detail = [
            {"what": name, "expected": f"from {sys.prefix}", "got": path} for name, path in strays.items()
        ]
        raise Failed(f"loaded from outside {sys.prefix}: {', '.join(strays.values())}", detail)
    cudnn = getattr(torch._C, "_cudnn", None)
    if cudnn is not None:
        # torch's own rule (torch/backends/cudnn/__init__.py): a wheel may ask for a later minor version than
        # the one that it is compiled with, such as 9.10 with 9.8.
        compiled, running = cudnn.getCompileVersion(), cudnn.getRuntimeVersion()
        fits = running[0] == compiled[0] and running >= compiled
        must_be(f"cuDNN {running} fits torch, which is compiled with {compiled}", got=fits, expected=True)
    return None
