"""Code in an image that runs at Python's start, or in a locked module's place. Pure.

The rule is Python's own order: the working directory, PYTHONPATH, the standard library, the folders of
``site.getsitepackages()`` as CPython and Debian have them, with what ``site`` runs there; links are followed.
A name that the lock has must be found where the image of the lock has it. Sources: Python's ``site``, and
"The initialization of the sys.path module search path".
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from .compare import Difference
from .context import PREFIX, Context
from .links import folders, resolve
from .loader import is_read_by_linker
from .system_files import READ

_KEPT = (
    "*/site-packages/*.pth",
    "*/dist-packages/*.pth",
    "*/entry_points.txt",
    "etc/python3*/sitecustomize.py",
)
_PLUGINS = (*("torch.backends", "torch_dynamo_backends", "torchrun.", "triton.backends", "numba_extensions"),)
"""Groups of entry points that locked packages load by themselves."""

_BACKENDS = ("networkx.backend", "networkx.plugin")
"""The same for networkx, a dependency of torch that has such entry points itself."""

_PLUGINS_OF = {
    "fsspec": ("fsspec.specs",),
    "gymnasium": ("gymnasium.envs",),
    "gym": ("gym.envs",),
    "xarray": ("xarray.backends",),
    "dask": ("dask.",),
    "vllm": ("vllm.",),
    "jax": ("jax_plugins",),
    "lightning": ("lightning.",),
    "pytorch-lightning": ("lightning.", "pytorch_lightning."),
    "tensorflow": ("tensorflow_",),
}
"""Those that people install for: packages load them at their import, or when they are asked for by name."""

_ELSEWHERE = frozenset(
    (
        *("_overlapped", "_scproxy", "_winapi", "_wmi", "msvcrt", "nt", "vms_lib", "winreg"),
        *("java", "org"),  # of Jython
    )
)
"""Modules of other systems, which the standard library tries to import: subprocess `msvcrt`, pickle
`org.python.core`. On Linux none is there, so one that is runs in nearly every program."""

_TAKEN_WHERE_PRESENT = {
    "torch": (
        *("opt_einsum", "dill", "torch_xla", "triton", "optree", "torchcomms", "torchdistx", "cutlass"),
        *("cutlass_api", "cutlass_library", "ck4inductor", "deeplearning", "flash_attn", "halide", "helion"),
        *("nvmath", "tvm"),
    ),
    "mpmath": ("gmpy", "gmpy2"),
    "sympy": ("flint", "gmpy2"),
    "pandas": ("bottleneck", "numexpr"),
    "xarray": ("bottleneck", "numbagg", "opt_einsum"),
    "transformers": ("apex", "flash_attn", "kernels", "xformers"),
    "diffusers": ("flash_attn", "kernels", "xformers"),
}
"""Modules that a locked package computes with where they are there: torch.einsum orders its products by
opt_einsum, pandas sums by bottleneck.

Not every name that a package tries to import: torch and what it needs try 145, also pandas. A test
asks torch at run time what it looks for, so that a name of another release is judged by a person.
"""

_PROGRAMS = frozenset(("usr/bin", "usr/sbin"))
"""Folders of programs: ``ld.so`` there is not a module of Python, and a linker called ``ld`` hides none."""

_LOCAL_FILES = re.compile(r"^\s*(?:file|local)\s*=", re.MULTILINE)
"""Names of fsspec's by which everything opens files of this machine; a later one takes their place."""

_APPORT = "try: import apport_python_hook except ImportError: pass else: apport_python_hook.install()"
"""What Ubuntu ships as ``/etc/python3.*/sitecustomize.py``, without comments and line breaks; Debian's is
empty.

The manifest has only the link to it, since a container's start may change what is below ``/etc``.
"""

_EMPTY = hashlib.sha256().hexdigest()


def is_read_at_start(path: str) -> bool:
    """Whether a rule needs the content of a file, by its path without a leading slash."""
    return path in READ or is_read_by_linker(path) or any(fnmatchcase(path, pattern) for pattern in _KEPT)


def startup(context: Context) -> Iterator[Difference]:
    """Yield what runs at the start of a process, or in a locked module's place.

    Needs the content of the files that `is_read_at_start` names.
    """
    sites, searched = _searched(context)
    places = tuple(f"{place}/" for place in _landmarks(context))
    for path in context.added:
        is_in = f"{path}/".startswith(places)  # a zip may be a folder
        is_in = is_in or (path.endswith("._pth") and path.removesuffix("._pth") in context.tree.files)
        is_in = is_in or _is_tried(path, context, searched)
        if is_in or _runs(path, context, sites) or _customizes(path, context, searched):
            yield Difference(f"/{path}", "runs at start", "", f"/{path}")
    yield from _plugins(context, searched)
    yield from _shadows(context)


def _is_tried(path: str, context: Context, searched: set[str]) -> bool:
    """Whether a file is, or is in, a module that the standard library tries to import."""
    if (top := _module(path) or _linked(path, context)) is None:
        return False
    folder, name = top
    while folder not in searched and folder:
        folder, _, name = folder.rpartition("/")
    return folder in searched and name in _ELSEWHERE


def _landmarks(context: Context) -> Iterator[str]:
    """Yield what the interpreter takes for its settings or its library before the locked ones.

    CPython's ``Modules/getpath.py`` looks beside the program first, then upwards; ``NAME._pth`` is beside
    each program NAME, and takes the place of the whole path.
    """
    python = context.lock.request.python
    archive = f"python{python.replace('.', '')}.zip"
    for folder in _standard(context):
        yield f"{folder.rpartition('/')[0]}/{archive}"
    interpreter = resolve(context.lock.interpreter, context.tree.files) or context.lock.interpreter
    for folder in sorted({f"{PREFIX}/bin", "usr/bin", interpreter.strip("/").rpartition("/")[0]}):
        yield from (f"{folder}/{name}" for name in ("pyvenv.cfg", "pybuilddir.txt", "Modules/Setup.local"))
        for lib in ("lib", "lib64"):
            yield from (f"{folder}/{lib}/{name}" for name in (archive, f"python{python}"))


def unknown_plugins(context: Context) -> Iterator[str]:
    """Yield entry points that locked packages load when they are imported, or asked for something by name."""
    groups = [group for name in sorted(_locked_names(context)) for group in _PLUGINS_OF.get(name, ())]
    _, searched = _searched(context)
    for path in context.added:
        if _is_entry_points(path, searched):
            text = context.tree.kept.get(path, b"").decode("utf-8", "replace")
            heads = re.findall(r"^\s*\[\s*(.*)", text, re.MULTILINE)
            if found := next((head for head in heads if head.startswith(tuple(groups))), None):
                yield f"/{path} (adds to {found.rstrip(' ]')})"


def unknown_helpers(context: Context) -> Iterator[str]:
    """Yield added modules that a locked package computes with where they are present."""
    names, (_, searched) = _locked_names(context), _searched(context)
    users: dict[str, list[str]] = {}
    for user, modules in _TAKEN_WHERE_PRESENT.items():
        for module in modules if user in names else ():
            users.setdefault(module, []).append(user)
    seen = set[str]()
    for path in context.added:
        folder, name = _module(path) or _linked(path, context) or ("", "")
        if name in users and folder in searched and name not in seen:
            seen.add(name)
            yield f"/{path} ({' and '.join(users[name])} may compute with it)"


def _searched(context: Context) -> tuple[set[str], set[str]]:
    """Return the folders of site, and with them all of the path."""
    sites = {*_site_folders(context)}
    return sites, {*_first(context), *_standard(context), *sites, *_named_by_path_files(context, sites)}


def _site_folders(context: Context) -> Iterator[str]:
    """Yield the folders whose ``.pth`` files the environment's Python reads, links followed."""
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


def _first(context: Context) -> list[str]:
    """Return what is searched first: the working directory or the script's folder, and PYTHONPATH."""
    files, config = context.tree.files, context.tree.config
    words = [str(word) for word in (*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ()))]
    scripts = [posixpath.join(context.start, word) for word in words if word.endswith(".py")]
    found = [resolve(each, files) or "" for each in (context.start, *map(posixpath.dirname, scripts))]
    return found + folders(context.env.get("PYTHONPATH", ""), context.start, files)


def _lines(path: str, context: Context) -> Iterator[str]:
    """Yield the lines of a ``.pth`` file as every Python splits them.

    By line feed up to 3.12; since then by any break, and without a byte order mark.
    """
    text = _text(path, context).removeprefix("\ufeff")
    yield from re.split(r"[\r\n]", text)
    yield from text.splitlines()


def _named_by_path_files(context: Context, sites: set[str]) -> Iterator[str]:
    """Yield the folders that the lines of ``.pth`` files add, in the image as it is."""
    for path in context.added:
        if path.endswith(".pth") and path.rpartition("/")[0] in sites:
            yield from _places(path, context)


_IMPORTS = re.compile(r"import[ \t]")


def _places(path: str, context: Context) -> Iterator[str]:
    """Yield what the lines of a ``.pth`` file add to the path, links followed; `site` strips their ends."""
    for line in map(str.rstrip, _lines(path, context)):
        if line and not line.startswith("#") and not _IMPORTS.match(line):
            place = resolve(posixpath.join(path.rpartition("/")[0], line), context.tree.files)
            if place is not None:
                yield place


def _runs(path: str, context: Context, sites: set[str]) -> bool:
    python = context.lock.request.python
    folder, _, name = path.rpartition("/")
    if not name.endswith(".pth") or not (
        folder in sites or folder.endswith(f"/.local/lib/python{python}/site-packages")
    ):
        return False
    # A line that does not import only adds a folder behind all others. In an archive nobody has looked.
    return any(_IMPORTS.match(line) for line in _lines(path, context)) or any(
        _kind(place, context) == "file" for place in _places(path, context)
    )


def _kind(path: str, context: Context) -> str:
    return context.tree.files[path].kind if path in context.tree.files else ""


def _customizes(path: str, context: Context, searched: set[str]) -> bool:
    """Whether a file, or a link, is a ``sitecustomize`` that Python may find, and does something."""
    module = _module(path) or (path.rpartition("/")[0], path.rpartition("/")[2])
    folder, name = module
    is_etc = fnmatchcase(path, "etc/python3*/sitecustomize.py")
    if name.partition(".")[0] not in ("sitecustomize", "usercustomize"):
        return False
    # Another Python's, or a package's own, as debugpy's: nothing puts their folders on this Python's path.
    others = re.search(r"(?:^|/)lib/python(3\.\d+)(?:/|$)", folder)
    inside = others and (others[1] != context.lock.request.python or re.search(r"-packages/.", folder))
    if inside and folder not in searched:
        return False
    kept = context.tree.kept.get(path) if is_etc else None
    if kept is None or not kept.isascii() or b"coding" in kept:  # PEP 263: then a comment may be no comment
        return True
    code = " ".join(re.sub(rb"#[^\r\n\f\v]*", b"", kept).decode().split())
    is_hooked = any((_module(each) or ("", ""))[1] == "apport_python_hook" for each in context.added)
    return code != "" and (code != _APPORT or is_hooked)


def _plugins(context: Context, searched: set[str]) -> Iterator[Difference]:
    """Entry points that locked packages load by themselves.

    `import torch` does, from 2.5 on (torch/__init__.py, _import_device_backends).
    """
    files, named = context.tree.files, context.named
    locked = _locked_names(context)
    groups = (*_PLUGINS, *(_BACKENDS if "networkx" in locked else ()))
    for path, record in sorted(files.items()):
        if path in named and named[path].content == record.content:
            continue
        folder, _, name = path.rpartition("/")
        if _is_entry_points(path, searched):
            text = _text(path, context)
            replaced = "fsspec" in locked and "fsspec.specs" in text and _LOCAL_FILES.search(text)
            if replaced or any(group in text for group in groups):
                yield Difference(f"/{path}", "runs at start", "", f"/{path}")
        elif (
            record.kind == "link"
            and name.lower().endswith((".dist-info", ".egg-info"))
            and folder in searched
        ):
            yield Difference(f"/{path}", "runs at start", "", f"/{path}")


def _locked_names(context: Context) -> set[str]:
    lock = context.lock
    return {*lock.distributions, *(name for p in lock.conda for name in (p.name, p.distribution))}


def _is_entry_points(path: str, searched: set[str]) -> bool:
    folder, _, name = path.rpartition("/")
    described = folder.lower().endswith((".dist-info", ".egg-info")) and name == "entry_points.txt"
    return described and folder.rpartition("/")[0] in searched


def _text(path: str, context: Context) -> str:
    """Return a file's text; for one that could not be read, such as a link, what counts as code."""
    kept = context.tree.kept.get(path)
    return "import torch.backends" if kept is None else kept.decode("utf-8", "replace")


def _shadows(context: Context) -> Iterator[Difference]:
    """Files that are imported in place of a locked one, and archives that could be."""
    tree, named = context.tree, context.named
    before = _first(context)
    for place in before:
        archive = next((each for each in _upwards(place) if each in tree.files), "")
        if archive and tree.files[archive].kind == "file":
            yield Difference(f"/{archive}", "runs at start", "", f"/{archive}")
    site = f"{PREFIX}/lib/python{context.lock.request.python}/site-packages"
    order = {folder: n for n, folder in reversed([*enumerate([*before, *_standard(context), site])])}
    modules, importable, packages = _locked_modules(context, order, site)
    for path in context.added:
        # pip may replace itself, and a newer one has other modules.
        module = None if path.startswith(f"{site}/pip/") else _module(path) or _linked(path, context)
        if module is None or (module[0] in _PROGRAMS and module[0] not in order):
            continue
        first = modules.get(module) or packages.get(module[0])
        if first is None and module[0] in order and module[1] in importable:
            position, found = importable[module[1]]
            first = found if order[module[0]] <= position else None
        if first is None or (named[first].kind == "dir" and tree.files[path].content == _EMPTY):
            continue
        yield Difference(f"/{path}", "shadows", f"/{first}", f"/{path}")


def _locked_modules(
    context: Context, order: Mapping[str, int], site: str
) -> tuple[Mapping[tuple[str, str], str], Mapping[str, tuple[int, str]], Mapping[str, str]]:
    """Return the locked modules: by folder and name, by name where it is first, and packages by folder."""
    modules: dict[tuple[str, str], str] = {}
    importable: dict[str, tuple[int, str]] = {}
    packages: dict[str, str] = {}
    named = context.named
    # A module's source says more than its bytecode.
    for path in sorted((p for p, r in named.items() if r.kind != "dir"), key=lambda p: (p.endswith("c"), p)):
        if module := _module(path):
            modules.setdefault(module, path)
            if module[0] in order:
                importable.setdefault(module[1], (order[module[0]], path))
            if path.endswith("/__init__.py") and named[path].content != _EMPTY:
                packages[path.removesuffix("/__init__.py")] = path
    for path, record in named.items():  # a folder without __init__ is a package all the same
        folder, _, name = path.rpartition("/")
        if record.kind == "dir" and folder == site and "." not in name:
            modules.setdefault((folder, name), path)
            importable.setdefault(name, (order[folder], path))
    return modules, importable, packages


def _linked(path: str, context: Context) -> tuple[str, str] | None:
    """Return the module that a link to a package's folder is; of one to bytecode, that of the package."""
    folder, _, name = path.rpartition("/")
    if context.tree.files[path].kind != "link" or "." in name:
        return None
    if name == "__pycache__":
        folder, _, name = folder.rpartition("/")
    return folder, name


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _module(path: str) -> tuple[str, str] | None:
    """Return the folder and name of a file's module; None if it is not a module."""
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
