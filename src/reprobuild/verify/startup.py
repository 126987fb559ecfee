"""An image → what runs in a Python process, or in a locked module's place, before the program does. Pure.

The rule is Python's own order: the working directory, PYTHONPATH, the standard library, the folders of
``site.getsitepackages()`` as CPython and Debian have them, with what ``site`` runs there; links are followed.
A name that the lock has must be found where the image of the lock has it. Sources: Python's ``site``, and
"The initialization of the sys.path module search path".
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from .compare import Difference
from .context import PREFIX, Context
from .links import folders, resolve
from .loader import CACHE

_KEPT = (
    "*/site-packages/*.pth",
    "*/dist-packages/*.pth",
    "*/entry_points.txt",
    "etc/python3*/sitecustomize.py",
)

_DEBIAN_SITECUSTOMIZE = (
    "",
    "try: import apport_python_hook except ImportError: pass else: apport_python_hook.install()",
)
"""What Debian and Ubuntu ship as ``/etc/python3.*/sitecustomize.py``, without comments and line breaks.

The manifest has only the link to it, since a container's start may change what is below ``/etc``.
"""

_ENDINGS = (".py", ".pyc", ".so")
_EMPTY = hashlib.sha256().hexdigest()


def is_read_at_start(path: str) -> bool:
    """Whether a rule needs the content of a file, by its path without a leading slash."""
    return path == CACHE or any(fnmatchcase(path, pattern) for pattern in _KEPT)


def startup(context: Context) -> Iterator[Difference]:
    """Give what runs at the start of a process, or in a locked module's place.

    Needs the content of the files that `is_read_at_start` names.
    """
    sites = {*_site_folders(context)}
    version = context.lock.request.python.replace(".", "")
    places = {
        *(f"{PREFIX}/bin/pyvenv.cfg", "usr/bin/pybuilddir.txt", f"{PREFIX}/bin/pybuilddir.txt"),
        *(f"{each.rpartition('/')[0]}/python{version}.zip" for each in _standard(context)),
    }
    for path in context.added:
        if path in places or _runs(path, context, sites):
            yield Difference(f"/{path}", "runs at start", "", f"/{path}")
    yield from _shadows(context)


def _site_folders(context: Context) -> Iterator[str]:
    """Give the folders whose ``.pth`` files the environment's Python reads, links followed."""
    python = f"python{context.lock.request.python}"
    for lib in ("lib", "lib64", "local/lib"):
        for folder in (f"{python}/site-packages", f"{python}/dist-packages", "python3/dist-packages"):
            yield resolve(f"{PREFIX}/{lib}/{folder}", context.tree.files) or ""


def _standard(context: Context) -> list[str]:
    """Return the folders of the locked standard library, as they are searched."""
    python = f"/python{context.lock.request.python}"
    lib = {f"usr/lib{python}", f"{PREFIX}/lib{python}"}
    lib |= {
        p.rpartition("/")[0] for p in context.named if p.endswith((f"{python}/os.py", f"{python}/os.pyc"))
    }
    return [folder for each in sorted(lib) for folder in (each, f"{each}/lib-dynload")]


def _runs(path: str, context: Context, sites: set[str]) -> bool:
    python = context.lock.request.python
    folder, _, name = path.rpartition("/")
    stem = (posixpath.basename(folder) if name.startswith("__init__.") else name).partition(".")[0]
    if stem in ("sitecustomize", "usercustomize") and name.endswith(_ENDINGS):
        code = re.sub(r"#.*", "", _text(path, context))
        return not (is_read_at_start(path) and " ".join(code.split()) in _DEBIAN_SITECUSTOMIZE)
    if name.endswith(".pth") and (
        folder in sites or folder.endswith(f"/.local/lib/python{python}/site-packages")
    ):
        # A line that does not import only adds a folder behind all others.
        return re.search(r"^import[ \t]", _text(path, context), re.MULTILINE) is not None
    if name == "entry_points.txt" and folder.endswith((".dist-info", ".egg-info")):
        # `import torch` loads these, from 2.5 on (torch/__init__.py, _import_device_backends).
        return "torch.backends" in _text(path, context) and folder.rpartition("/")[0] in sites
    return False


def _text(path: str, context: Context) -> str:
    """Return a file's text; for one that could not be read, such as a link, what counts as code."""
    kept = context.tree.kept.get(path)
    return "import torch.backends" if kept is None else kept.decode("utf-8", "replace").replace("\r", "\n")


def _shadows(context: Context) -> Iterator[Difference]:
    """Files that are imported in place of a locked one, and archives that could be."""
    tree, named = context.tree, context.named
    before = folders(context.start, "/", tree.files)
    before += folders(context.env.get("PYTHONPATH", ""), context.start, tree.files)
    for place in before:
        archive = next((each for each in _upwards(place) if each in tree.files), "")
        if archive and tree.files[archive].kind == "file":
            yield Difference(f"/{archive}", "runs at start", "", f"/{archive}")
    site = f"{PREFIX}/lib/python{context.lock.request.python}/site-packages"
    order = {folder: n for n, folder in reversed([*enumerate([*before, *_standard(context), site])])}
    modules: dict[tuple[str, str], str] = {}
    importable: dict[str, tuple[int, str]] = {}
    # A module's source says more than its bytecode.
    for path in sorted((p for p, r in named.items() if r.kind != "dir"), key=lambda p: (p.endswith("c"), p)):
        if module := _module(path):
            modules.setdefault(module, path)
            if module[0] in order:
                importable.setdefault(module[1], (order[module[0]], path))
    for path, record in named.items():  # a folder without __init__ is a package all the same
        folder, _, name = path.rpartition("/")
        if record.kind == "dir" and folder == site and "." not in name:
            modules.setdefault((folder, name), path)
            importable.setdefault(name, (order[folder], path))
    for path in context.added:
        # pip may replace itself, and a newer one has other modules.
        module = None if path.startswith(f"{site}/pip/") else _module(path)
        if module is None:
            continue
        first = modules.get(module)
        if first is None and module[0] in order and module[1] in importable:
            position, found = importable[module[1]]
            first = found if order[module[0]] <= position else None
        if first is None or (named[first].kind == "dir" and tree.files[path].content == _EMPTY):
            continue
        yield Difference(f"/{path}", "shadows", f"/{first}", f"/{path}")


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _module(path: str) -> tuple[str, str] | None:
    """Return the folder and name of the module that a file is; None for a file that is none."""
    folder, _, name = path.rpartition("/")
    stem, *endings = name.split(".")
    if not stem or not endings or endings[-1] not in ("py", "pyc", "so"):
        return None
    # Bytecode is loaded in place of the source that it says it was made from.
    if folder.endswith("/__pycache__") or folder == "__pycache__":
        folder = folder.rpartition("/")[0]
    if stem == "__init__":
        folder, _, stem = folder.rpartition("/")
    return (folder, stem) if stem else None
