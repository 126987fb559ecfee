"""Read the pins of an image's Python packages from its files, without running it. Pure.

They are those that the ``python3`` on the image's PATH would find: in its virtual environment, if it has one,
else where it keeps packages itself; in PYTHONPATH's folders, and those that ``.pth`` files add (site.py).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement

from ..errors import ImageError, RequestError
from ..oci.file_tree import ImageTree
from ..resolve.base_image_files import PATH, Content
from .common import Imported

_LARGEST = 4 << 20
"""Bytes of a file that is looked at."""

_PYTHON = re.compile(r"python(3\.[0-9]{1,3})[a-z]?")
_CUDA = re.compile(r"^cuda\b[^=\n]*= *['\"]([0-9]+\.[0-9]+)", re.MULTILINE)
_ROOT = ("", "0", "root")


def is_kept(path: str, size: int) -> bool:
    """Whether `read_image` needs the content of a file; see `oci.merge_layers.Keep`."""
    folder, _, name = path.rpartition("/")
    return size <= _LARGEST and (
        (name in ("METADATA", "PKG-INFO") and folder.endswith(("-info", "EGG-INFO")))
        or name == "pyvenv.cfg"
        or name.endswith((".pth", ".egg-info"))
        or path.endswith("torch/version.py")
    )


def read_image(tree: ImageTree, image: str) -> Imported:
    """Return the packages of an image; ``image`` is the user's name for it.

    Raises `ImageError` where it has no Python, and `RequestError` for packages that no index has.
    """
    files = Content(tree.files, tree.kept, image)
    env = dict(line.split("=", 1) for line in tree.config.get("Env") or () if "=" in line)
    python = _python(files, env.get("PATH") or PATH)
    own = [each for each in env.get("PYTHONPATH", "").split(":") if each.startswith("/")]
    user = str(tree.config.get("User") or "").partition(":")[0] in _ROOT
    folders = [*own, *python.folders(files, user="/root" if user else None)]
    places = list(dict.fromkeys(real for each in folders if (real := files.real(each)) is not None))
    found: dict[str, _Distribution] = {}
    infos = _infos(tree)
    for place in places:
        for each in infos.get(place, ()):
            found.setdefault(re.sub(r"[-_.]+", "-", each.name).lower(), each)
    if direct := sorted(f"{each.name} {each.version}" for each in found.values() if each.direct):
        raise RequestError(
            f"{image}: installed from an address or a folder, not from an index: {', '.join(direct)}",
            hint="publish wheels to your own index, and install from there",
        )
    name = re.sub(r"^(oci|docker|podman):|@.*|:[^/:]*$", "", image).rpartition("/")[2]
    return Imported(
        origin=image,
        name=name,
        requirements=tuple(_requirement(found[key], image) for key in sorted(found)),
        python=python.minor,
        cuda=_cuda(tree, places),
    )


@dataclass(frozen=True, slots=True)
class _Distribution:
    name: str
    version: str
    direct: bool
    """Whether it was installed from an address or a folder (PEP 610)."""


@dataclass(frozen=True, slots=True)
class _Python:
    minor: str
    prefix: str
    """Where it is installed, without a leading slash."""
    venv: str | None
    """The virtual environment that it is started in."""
    shared: bool
    """Whether that has the packages outside of it too."""

    def folders(self, files: Content, *, user: str | None) -> Iterator[str]:
        """Yield the folders of packages in the order of ``sys.path``; ``user`` is the home directory."""
        libraries = f"lib/python{self.minor}"
        every: list[str] = []
        if self.venv is not None:
            every.append(f"{self.venv}/{libraries}/site-packages")
        if self.venv is None or self.shared:
            every += [f"{user}/.local/{libraries}/site-packages"] if user is not None else []
            if self.prefix == "usr":  # where Debian's looks, then others'
                every += [f"usr/local/{libraries}/dist-packages", "usr/lib/python3/dist-packages"]
                every += [
                    f"usr/local/{libraries}/site-packages",
                    f"usr/lib64/python{self.minor}/site-packages",
                ]
            every += [f"{self.prefix}/{libraries}/{kind}" for kind in ("dist-packages", "site-packages")]
        for folder in every:
            yield folder
            yield from _added(files, folder)


def _python(files: Content, path: str) -> _Python:
    """Return the first ``python3`` on a PATH. Raises `ImageError`."""
    for folder in path.split(":"):
        real = files.real(posixpath.join(folder, "python3"))
        where = files.real(folder)
        if real is None or where is None or files.files[real].kind != "file":
            continue
        prefix = posixpath.dirname(posixpath.dirname(real))
        form = _PYTHON.fullmatch(posixpath.basename(real))
        minors = {form[1]} if form else _minors(files, prefix)
        if len(minors) != 1:
            break
        for above in (where, posixpath.dirname(where)):
            if (settings := _settings(files, f"{above}/pyvenv.cfg")) is not None:
                shared = settings.get("include-system-site-packages", "").lower() == "true"
                return _Python(minors.pop(), prefix, above, shared)
        return _Python(minors.pop(), prefix, None, shared=False)
    else:
        raise ImageError(f"{files.name}: no python3 is on its PATH", hint="name an image that has one")
    raise ImageError(
        f"{files.name}: /{real} does not say which Python it is",
        hint="have it write a requirements.txt (python3 -m pip freeze), and give that to --from",
    )


def _minors(files: Content, prefix: str) -> set[str]:
    """Return the versions of the Pythons whose standard library is below a prefix."""
    form = re.compile(rf"{re.escape(prefix)}/lib/python(3\.[0-9]{{1,3}})/os\.py")
    return {match[1] for path in files.files if (match := form.fullmatch(path))}


def _settings(files: Content, path: str) -> Mapping[str, str] | None:
    """Return the content of a ``pyvenv.cfg``; None without one."""
    real = files.real(path)
    if real is None or real not in files.kept:
        return None
    lines = (line.partition("=") for line in _text(files.kept[real]).splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in lines}


def _added(files: Content, folder: str) -> Iterator[str]:
    """Yield the folders that the ``.pth`` files of a folder add."""
    real = files.real(folder)
    if real is None:
        return
    for path in sorted(p for p in files.kept if p.endswith(".pth") and posixpath.dirname(p) == real):
        for line in _text(files.kept[path]).splitlines():
            if line.strip() and not line.startswith(("#", "import ", "import\t")):
                yield posixpath.join("/", real, line.rstrip())


def _infos(tree: ImageTree) -> Mapping[str, list[_Distribution]]:
    """Return the distributions of each folder that has some, by path."""
    found: dict[str, list[_Distribution]] = {}
    for path in sorted(tree.kept):
        folder, _, name = path.rpartition("/")
        if name in ("METADATA", "PKG-INFO"):
            place, direct = posixpath.dirname(folder), f"{folder}/direct_url.json" in tree.files
        elif name.endswith(".egg-info"):
            place, direct = folder, False
        else:
            continue
        head = _text(tree.kept[path]).partition("\n\n")[0]
        fields = dict(re.findall(r"^(Name|Version): *(\S+)[ \t]*$", head, re.MULTILINE))
        if len(fields) == 2:
            found.setdefault(place, []).append(_Distribution(fields["Name"], fields["Version"], direct))
    return found


def _requirement(found: _Distribution, image: str) -> Requirement:
    try:
        return Requirement(f"{found.name}=={found.version}")
    except InvalidRequirement:
        raise ImageError(f"{image}: {found.name} {found.version} is not a package name and version") from None


def _cuda(tree: ImageTree, places: list[str]) -> str | None:
    """Return the CUDA version in torch's version file, or ``cpu``; None without torch."""
    for place in places:
        content = tree.kept.get(f"{place}/torch/version.py")
        if content is not None:
            found = _CUDA.search(_text(content))
            return found[1] if found else "cpu"
    return None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").replace("\r\n", "\n")
