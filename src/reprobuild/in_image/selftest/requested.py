"""The packages that the request names: each can be imported, and none is made for another CUDA."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .linkage import CUDA_MAJOR, SharedObject, debian_package, installed_objects, missing
from .location import locked
from .machine import gpu_missing
from .outcomes import Failed, NotRun, Results, note
from .registry import SETTING, check

IMPORT_SECONDS = 60.0
"""How long one package may take to be imported."""

ASIDE = re.compile(r"_.*|tests?|testing|docs?|examples?|scripts?|benchmarks?|conftest|setup|tools?")
"""Names at the top of a distribution that are not what its users import, where it has others."""

WANTS_GPU = re.compile(r"(?!ModuleNotFoundError).*(cuda|gpu|nvidia|driver)", re.IGNORECASE)

OF_TORCH = re.compile(r"ImportError: lib(c10|torch)\w*\.so: cannot open shared object file")
"""What an extension of PyTorch says if it is imported before torch, which loads the libraries it links."""


def requested_names() -> list[str]:
    """Return the names of the packages that the request of the image's lock names; raises `NotRun`."""
    table = locked()["request"]
    names = [re.match(r"[A-Za-z0-9._-]+", each) for each in table["packages"]]
    return sorted({re.sub(r"[-_.]+", "-", name[0]).lower() for name in names if name})


def distribution_of(name: str) -> importlib.metadata.Distribution | None:
    """Return an installed distribution; None where there is none, as for packages of conda's."""
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def modules_of(found: importlib.metadata.Distribution, name: str) -> list[str]:
    """Return the modules that a distribution is imported by, from the list of its files (RECORD).

    Where one has the distribution's name it is that one; else all at the top, without tests and the like.
    """
    tops: dict[str, bool] = {}
    for file in found.files or ():
        form = re.fullmatch(r"([A-Za-z_]\w*)(\.py|(?:\.[\w-]+)?\.so)", file.parts[0])
        if len(file.parts) == 1 and form is not None:
            tops[form[1]] = True
        elif len(file.parts) > 1 and file.parts[0].isidentifier() and file.name.endswith((".py", ".so")):
            tops[file.parts[0]] = tops.get(file.parts[0], False) or file.parts[1:] == ("__init__.py",)
    named = [top for top in tops if re.sub(r"[-_.]+", "-", top).lower() == name]
    if named:
        return named
    regular = sorted(top for top, whole in tops.items() if whole) or namespaced(found, tops)
    return [top for top in regular if not ASIDE.fullmatch(top)] or regular[:1]


def namespaced(found: importlib.metadata.Distribution, tops: Collection[str]) -> list[str]:
    """Return the packages just below namespaces that distributions share, as in ``google.protobuf``."""
    files = found.files or ()
    below = {f"{f.parts[0]}.{f.parts[1]}" for f in files if len(f.parts) == 3 and f.name == "__init__.py"}
    return sorted(
        each for each in below if each.split(".")[0] in tops and each.replace(".", "").isidentifier()
    )


def objects_of(found: importlib.metadata.Distribution) -> list[SharedObject]:
    """Return the shared objects of a distribution."""
    paths = {
        os.path.realpath(str(found.locate_file(file))) for file in found.files or () if ".so" in file.name
    }
    return [each for each in installed_objects() if os.path.realpath(each.path) in paths]


def import_error(*modules: str) -> str:
    """Import modules in a process of their own; return the last line of what went wrong, or nothing."""
    command = [sys.executable, "-c", f"import {', '.join(modules)}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=IMPORT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it takes longer than {IMPORT_SECONDS:.0f} s"
    if done.returncode < 0:
        return f"the process was ended by signal {-done.returncode}"
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return (lines[-1] if lines else f"exit status {done.returncode}")[:500] if done.returncode else ""


def cure(libraries: Sequence[str]) -> str:
    """Return what to write into the request for libraries that are missing."""
    packages = sorted({debian_package(library) for library in libraries if not CUDA_MAJOR.fullmatch(library)})
    listed = ", ".join(f'"{package}"' for package in packages)
    return f"; no package of the image has {', '.join(libraries)}" + (
        f": add apt = [{listed}]" if packages else ""
    )


@check(SETTING, order=960, once=True)
def requested_imports(_: str) -> Results:
    """Every package that the request names can be imported, each in a process of its own."""
    found = {name: distribution_of(name) for name in requested_names()}
    modules = {
        module: (name, each) for name, each in found.items() if each for module in modules_of(each, name)
    }
    if not modules:
        raise NotRun("the request names no packages")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        errors = dict(zip(modules, pool.map(import_error, modules)))
    lines = []
    for module, error in errors.items():
        name, each = modules[module]
        if OF_TORCH.match(error) and not (error := import_error("torch", module)):
            note(f"{module} has to be imported after torch")
        libraries = missing(objects_of(each)) if error else []
        if error and not libraries and WANTS_GPU.match(error) and gpu_missing():
            note(f"{name} cannot be imported without a GPU: {error}")
        elif error:
            text = error + (cure(libraries) if libraries else "")
            lines.append({"what": f"import {module} ({name})", "expected": "no error", "got": text})
    if lines:
        raise Failed(f"cannot be imported: {', '.join(line['what'].split()[1] for line in lines)}", lines)
    note(f"{len(modules)} modules")
    return None


@check(SETTING, order=965, once=True)
def linked_cuda(_: str) -> Results:
    """No package links CUDA's libraries of another major version alone than the image has."""
    objects = installed_objects()
    have = {form[1] for each in objects if (form := CUDA_MAJOR.fullmatch(Path(each.path).name))}
    if not have:
        raise NotRun("the image has no CUDA libraries")
    wants: dict[str, dict[str, str]] = {}
    for each in objects:
        parts = Path(each.path).parts
        at = parts.index("site-packages") + 1 if "site-packages" in parts else 0
        for library in each.needed:
            if at and (form := CUDA_MAJOR.fullmatch(library)):
                wants.setdefault(parts[at], {})[form[1]] = library
    # A package with an object for each CUDA loads the one that fits, as bitsandbytes does.
    wrong = {name: found for name, found in wants.items() if not have & found.keys()}
    if wrong:
        expected = f"CUDA {', '.join(sorted(have))}"
        detail = [
            {"what": name, "expected": expected, "got": ", ".join(found.values())}
            for name, found in wrong.items()
        ]
        raise Failed(f"built for another CUDA: {', '.join(wrong)}", detail)
    for name in sorted({Path(each.path).name for each in objects if missing([each])}):
        lacking = missing([each for each in objects if Path(each.path).name == name])
        note(f"{name} needs {', '.join(lacking)}, which no package of the image has")
    return None
