"""An image → what in it runs in a Python process, or in its place, before the program does. Pure.

The lock names neither these files nor these variables, and each of them can change every result, or forge the
self-test's report. Sources: Python's ``site`` and "The initialization of the sys.path module search path";
``ld.so(8)``.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from ..lock.model import Lock
from ..oci.file_tree import ImageTree
from ..oci.tar_writer import Record
from ..render.own_files import site_packages
from ..request.profiles import SITE_PREFIX
from .compare import Difference, settings

_PREFIX = SITE_PREFIX.lstrip("/")
_LIB = ("usr/lib", f"{_PREFIX}/lib")

_PATH_FILES = ("*/site-packages/*.pth", "etc/python3*/sitecustomize.py")

_VARIABLES = (
    *("LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES"),
    *("PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE"),
)
"""Variables that put other code, or another library, into a process."""

_DEBIAN_SITECUSTOMIZE = (
    "",
    "try: import apport_python_hook except ImportError: pass else: apport_python_hook.install()",
)
"""What Debian and Ubuntu ship as ``/etc/python3.*/sitecustomize.py``, without comments and line breaks.

The manifest has only the link to it, since a container's start may change what is below ``/etc``.
"""

_MODULE = re.compile(r"(?P<folder>.*?)/?(?P<name>[^/.]+)(?P<init>/__init__)?(\.[\w-]+)*\.(pyc?|so)")
_LIBRARY = re.compile(r"(?P<name>lib[^/]+?\.so)(\.[0-9.]+)?")


def is_read_at_start(path: str) -> bool:
    """Whether `startup` needs the content of a file, by its path without a leading slash."""
    return any(fnmatchcase(path, pattern) for pattern in _PATH_FILES)


def startup(named: Mapping[str, Record], tree: ImageTree, lock: Lock) -> Iterator[Difference]:
    """Give what runs at the start of a process, or in a locked module's place. ``named``: see `check_tree`.

    Needs the content of the files that `is_read_at_start` names.
    """
    added = [
        path for path, record in sorted(tree.files.items()) if path not in named and record.kind != "dir"
    ]
    env = {name[4:]: value for name, value in settings(tree.config).items() if name.startswith("Env ")}
    for path in added:
        if _runs(path, tree, lock):
            yield Difference(f"/{path}", "runs at start", "", f"/{path}")
    yield from _set(env, lock)
    yield from _shadows(named, added, env, tree, lock)


def _runs(path: str, tree: ImageTree, lock: Lock) -> bool:
    site, python = site_packages(lock).lstrip("/"), lock.request.python
    folder, _, name = path.rpartition("/")
    stem = (posixpath.basename(folder) if name.startswith("__init__.") else name).partition(".")[0]
    if stem in ("sitecustomize", "usercustomize") and name.endswith((".py", ".pyc", ".so")):
        code = re.sub(r"#.*", "", _text(path, tree))
        return not (is_read_at_start(path) and " ".join(code.split()) in _DEBIAN_SITECUSTOMIZE)
    if name.endswith(".pth") and (
        folder == site or folder.endswith(f"/.local/lib/python{python}/site-packages")
    ):
        # A line that does not import only adds a folder behind all others.
        return re.search(r"^import[ \t]", _text(path, tree), re.MULTILINE) is not None
    return path in (
        *(f"{_PREFIX}/bin/pyvenv.cfg", "usr/bin/pybuilddir.txt", f"{_PREFIX}/bin/pybuilddir.txt"),
        *(f"{lib}/python{python.replace('.', '')}.zip" for lib in _LIB),
        "etc/ld.so.preload",
    )


def _text(path: str, tree: ImageTree) -> str:
    """Return a file's text; for one that could not be read, such as a link, what counts as code."""
    return tree.kept[path].decode("utf-8", "replace").replace("\r", "\n") if path in tree.kept else "import x"


def _set(env: Mapping[str, str], lock: Lock) -> Iterator[Difference]:
    locked = {**(lock.base.env if lock.base is not None else {}), **lock.variables}
    for name in _VARIABLES:
        if name in env and name not in locked:
            yield Difference(f"Env {name}", "setting", "", env[name])


def _shadows(
    named: Mapping[str, Record], added: Collection[str], env: Mapping[str, str], tree: ImageTree, lock: Lock
) -> Iterator[Difference]:
    """Files that are imported, or loaded, in place of a locked one."""
    start = str(tree.config.get("WorkingDir") or "/")
    before = _folders(env.get("PYTHONPATH", ""), start)
    loaded = {*_folders(env.get("LD_LIBRARY_PATH", ""), start)} - {"lib", "usr/lib"}
    site, python = site_packages(lock).lstrip("/"), f"python{lock.request.python}"
    roots = {site, *(f"{lib}/{python}{more}" for lib in _LIB for more in ("", "/lib-dynload"))}
    modules: dict[tuple[str, str], str] = {}
    importable: dict[str, str] = {}
    libraries: dict[str, str] = {}
    # A module's source says more than its bytecode.
    for path in sorted((p for p, r in named.items() if r.kind != "dir"), key=lambda p: (p.endswith("c"), p)):
        if module := _module(path):
            modules.setdefault(module, path)
            if module[0] in roots:
                importable.setdefault(module[1], path)
        if library := _LIBRARY.fullmatch(posixpath.basename(path)):
            libraries.setdefault(library["name"], path)
    for path in added:
        # pip may replace itself, and a newer one has other modules.
        module = None if path.startswith(f"{site}/pip/") else _module(path)
        first = modules.get(module) if module else None
        if first is None and module and module[0] in before:
            first = importable.get(module[1])
        folder, _, name = path.rpartition("/")
        if first is None and folder in loaded and (library := _LIBRARY.fullmatch(name)):
            first = libraries.get(library["name"])
        if first is not None:
            yield Difference(f"/{path}", "shadows", f"/{first}", f"/{path}")


def _module(path: str) -> tuple[str, str] | None:
    """Return the folder and name of the module that a file is; None for a file that is none."""
    # Bytecode is loaded in place of the source that it says it was made from.
    found = _MODULE.fullmatch(path.replace("/__pycache__/", "/"))
    return None if found is None else (found["folder"], found["name"])


def _folders(text: str, base: str) -> list[str]:
    """Return the folders of a variable such as PYTHONPATH, without their leading slash."""
    return (
        [posixpath.normpath(posixpath.join(base, each)).lstrip("/") for each in text.split(":")]
        if text
        else []
    )
