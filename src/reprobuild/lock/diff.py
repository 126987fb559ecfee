"""Compare two locks by package, with the likely effect of each change. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from ..request.kernels import digests
from .model import Lock
from .packages import DebianPackage, PythonPackage, Wheel

Meaning = Literal["numbers", "behaviour", "nothing"]

MEANINGS: Mapping[Meaning, str] = {
    "numbers": "can move numbers",
    "behaviour": "can move behaviour",
    "nothing": "cannot",
}
"""How people read a meaning, the gravest first."""

Kind = Literal["python", "conda", "debian", "variable", "request", "reprobuild"]

# Computes, or decides how something is computed: frameworks, NVIDIA's libraries, BLAS, FFT, compilers.
_PYTHON_NUMBERS = re.compile(
    r"(lib)?torch(\w*|-.+)?|pytorch(-.+)?|(pytorch-)?triton(-.+)?|nvidia-.+|cuda-.+|cupy(-.+)?|jax(lib)?(-.+)?"
    r"|tensorflow(-.+)?|numpy|scipy|numba|llvmlite|numexpr|bottleneck|scikit-learn|mkl(-.+)?|intel-openmp"
    r"|tbb|openblas(-.+)?|scipy-openblas.*|onnxruntime(-.+)?|xgboost|lightgbm|opt-einsum|einops|flash-attn"
    r"|xformers|apex|bitsandbytes|transformer-engine(-.+)?|deepspeed|accelerate|safetensors|pandas|polars"
)
# The interpreter, the compilers' runtime, BLAS, NVIDIA's libraries as conda calls them.
_CONDA_NUMBERS = re.compile(
    r"python|libgcc(-ng)?|libstdcxx(-ng)?|libgfortran.*|libgomp|_openmp_mutex|llvm-openmp|lib(blas|cblas|lapack).*"
    r"|blas|lib(cu|nv|npp|torch|magma|cudnn|openblas|onnx|protobuf|mkl|sleef|fftw).*|magma|cudnn|nccl|cutensor"
    r"|fftw|gmp|mpfr|mpc|sleef|mkl.*|cudatoolkit|gcc.*|gxx.*|binutils.*|sysroot.*"
)
# libc with libm, the compilers' runtime libraries, BLAS, compilers that torch.compile may find.
_DEBIAN_NUMBERS = re.compile(
    r"libc6(-.+)?|libc-bin|lib(gcc-s|gcc|stdc\+\+|gfortran|gomp|quadmath|atomic)-?[0-9]+(-.+)?"
    r"|lib(blas|lapack|openblas|atlas|mkl|fftw|gsl|mpfr|mpc|gmp|omp|iomp|tbb)[0-9a-z.-]*"
    r"|(gcc|g\+\+|cpp|gfortran|clang|llvm|binutils)(-.+)?|cuda-.+|lib(cudnn|nccl|cublas|cufft|nv).*"
)
# Tools of installing, logging in and mounting, and what only people read: no program computes with them.
_DEBIAN_NOTHING = re.compile(
    r"adduser|apt|apt-utils|debconf(-.+)?|debian-archive-keyring|dpkg|gpgv|gpg|gpgconf|gpg-agent|e2fsprogs|logsave|libext2fs.*"
    r"|libapt-pkg.*|libdebconfclient0|libss2|login(\..+)?|mount|passwd|libpam.*|sysvinit-utils|usr-is-merged"
    r"|init-system-helpers|hostname|libsemanage.*|libsepol.*|libaudit.*|bsdutils|manpages"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One difference. A side is None if it is missing there."""

    kind: Kind
    name: str
    old: str | None
    new: str | None
    old_size: int = 0
    new_size: int = 0
    """Bytes of the file that is fetched."""
    meaning: Meaning
    why: str

    @property
    def size(self) -> int:
        """Bytes that the new lock fetches more, or less."""
        return self.new_size - self.old_size

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "old": self.old,
            "new": self.new,
            "size": self.size,
            "meaning": self.meaning,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class _Item:
    """What a side of a comparison has under one name."""

    text: str
    size: int
    content: str
    """Its sha256."""
    origin: str = ""
    """Where its file comes from: a host, a channel, or a source package of an archive."""
    entry: Mapping[str, str] = field(default_factory=dict)
    """The rest of its entry in the lock, by key."""


def diff(old: Lock, new: Lock) -> tuple[Change, ...]:
    """Return what differs between two locks: the gravest meaning first, then by kind and name."""
    hosts = _addresses(old)
    changes = [
        *_packages("python", _python(old), _python(new), hosts),
        *_packages("conda", _conda(old), _conda(new), hosts),
        *_packages("debian", _debian(old), _debian(new), hosts),
        *_values("variable", old.variables, new.variables),
        *_values("request", _request(old, new), _request(new, old)),
        *_build_tools(old, new),
        *_values("reprobuild", _own_files(old), _own_files(new)),
    ]
    return tuple(sorted(changes, key=_place))


def _place(change: Change) -> tuple[int, int, str]:
    return list(MEANINGS).index(change.meaning), _KINDS.index(change.kind), change.name


def diff_all(old: Sequence[Lock], new: Sequence[Lock]) -> tuple[Change, ...]:
    """Return what differs between the locks of two files, on the platforms that both have.

    What happens on all of them is one change, its sizes added up; else its name says where it happens.
    """
    olds, news = ({lock.platform: lock for lock in locks} for locks in (old, new))
    both = sorted(olds.keys() & news.keys())
    if len(both) < 2 and (both or len(old) == len(new) == 1):
        if not both:
            return diff(old[0], new[0])
        return tuple(sorted((*_platforms(olds, news), *diff(olds[both[0]], news[both[0]])), key=_place))
    found: dict[tuple[str, ...], dict[str, Change]] = {}
    for platform in both:
        for change in diff(olds[platform], news[platform]):
            key = (change.kind, change.name, str(change.old), str(change.new), change.why)
            found.setdefault(key, {})[platform] = change
    changes = [
        replace(
            next(iter(where.values())),
            name=key[1] + ("" if list(where) == both else f" ({', '.join(where)})"),
            old_size=sum(change.old_size for change in where.values()),
            new_size=sum(change.new_size for change in where.values()),
        )
        for key, where in found.items()
    ]
    return tuple(sorted((*_platforms(olds, news), *changes), key=_place))


def meaning_of_python(name: str) -> tuple[Meaning, str]:
    """Return what a change of a Python package, by its normalised name, can do, and why."""
    if _PYTHON_NUMBERS.fullmatch(name):
        return "numbers", "it computes, or decides how something is computed"
    if name == "pip":
        return "nothing", "it installs packages and computes nothing"
    return "behaviour", "a library of Python code that programs may call"


def meaning_of_conda(name: str) -> tuple[Meaning, str]:
    """Return what a change of a conda package can do, and why."""
    if _CONDA_NUMBERS.fullmatch(name) or _PYTHON_NUMBERS.fullmatch(name):
        return "numbers", "it computes, or decides how something is computed"
    if name == "pip":
        return meaning_of_python(name)
    return "behaviour", "a library or program that programs may use"


def meaning_of_debian(name: str) -> tuple[Meaning, str]:
    """Return what a change of a Debian package can do, and why."""
    if _DEBIAN_NUMBERS.fullmatch(name):
        return "numbers", "the C library, a compiler or its runtime, or a mathematical library"
    if re.fullmatch(r"(lib)?python3(\.[0-9]+)?(-.+)?", name):
        return "numbers", "the interpreter: its float printing, hashing and math are its own"
    if _DEBIAN_NOTHING.fullmatch(name):
        return "nothing", "a tool of the system; no program computes with it"
    return "behaviour", "a library or program of the system"


_KINDS: tuple[Kind, ...] = ("request", "reprobuild", "variable", "python", "conda", "debian")
_MEANING_OF = {"python": meaning_of_python, "conda": meaning_of_conda, "debian": meaning_of_debian}
_OWN_FILES: Mapping[str, tuple[Meaning, str]] = {
    "reprobuild.pth": ("numbers", "loads the import hook, which makes PyTorch deterministic"),
    "reprobuild_hook.py": ("numbers", "the import hook, which makes PyTorch deterministic"),
    "kernels.py": ("numbers", "takes the locked choices of kernels; without them it does nothing"),
    "version": ("nothing", "the release of reprobuild; its files say what came of it"),
}
_REQUEST_NUMBERS = re.compile(
    r"cuda|torch|index|python|platform|file-priority|(determinism|base|standalone-python)\..+"
)
# Of the same base image, which its digest names, or of the same standalone Python.
_SAME_BYTES = re.compile(r"base\.(index|manifests\..+|reference|created)|standalone-python\.(url|size)")
_OF_THE_SAME = "the same bytes, by their hash; what the lock says of them differs"


def _python(lock: Lock) -> dict[str, _Item]:
    return {
        p.name: _Item(p.version, p.file.size, p.wheel.sha256, _from(p), _entry(p.table()))
        for p in lock.python
    }


def _from(package: PythonPackage) -> str:
    """Return the host of a package's file, and whether it is built; of a repository or folder the whole."""
    file = package.file
    if isinstance(file, Wheel):
        return _host(file.url)
    return f"{file.kind} at {_host(file.url) if file.kind == 'sdist' else file.url}"


def _host(url: str) -> str:
    """Return scheme and host; of a file on this machine its folder; of what is no URL all."""
    found = urlsplit(url)
    if found.scheme == "file":
        return url.rpartition("/")[0]
    return _address(url) if "://" in url else url


def _conda(lock: Lock) -> dict[str, _Item]:
    return {
        p.name: _Item(
            f"{p.version} {p.build}", p.size, p.sha256, "/".join(p.url.split("/")[:-2]), _entry(p.table())
        )
        for p in lock.conda
    }


def _debian(lock: Lock) -> dict[str, _Item]:
    return {p.name: _Item(p.version, p.size, p.sha256, _pool(p), _entry(p.table())) for p in lock.debian}


def _pool(package: DebianPackage) -> str:
    """Return the archive and the folder in it of a package's source; those of security have one above."""
    return f"{package.archive}:{package.path.rpartition('/')[0].replace('pool/updates/', 'pool/', 1)}"


def _entry(table: Mapping[str, Any]) -> dict[str, str]:
    """Return a package's entry as one level of text."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        if key == "wheels":
            flat |= _entry(value[0])
        elif isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": text for inner, text in _entry(value).items()}
        else:
            flat[key] = _text(value)
    return flat


def _request(lock: Lock, other: Lock) -> dict[str, str]:
    """Return what is not a package as one level of text.

    What follows from the digest of a base image or standalone Python is in it where ``other`` has the same.
    """
    flat = {"platform": lock.platform, "epoch": str(lock.epoch), "gpu-targets": _text(lock.gpu_targets)}
    base, standalone = lock.base, lock.standalone
    if base is not None:
        flat["base.digest"] = digest = base.manifests[lock.platform]
        flat["base.layers"] = ", ".join(layer.digest for layer in base.layers)
        if other.base is not None and other.base.manifests.get(lock.platform) == digest:
            # The request has a key base.image.
            table = _entry({**base.to_dict(), "reference": base.image})
            flat |= {f"base.{key}": text for key, text in table.items()}
    if standalone is not None:
        flat["standalone-python.version"] = standalone.version
        flat["standalone-python.sha256"] = standalone.sha256
        if other.standalone is not None and other.standalone.sha256 == standalone.sha256:
            flat |= {f"standalone-python.{key}": text for key, text in _entry(standalone.to_dict()).items()}
    # By host alone: the rest of an address follows the version.
    flat["addresses"] = ", ".join(sorted(_addresses(lock)))
    for key, value in lock.request.to_dict().items():
        if isinstance(value, Mapping):
            flat |= {
                f"{key}.{inner}": _text(digests(each) if inner == "kernel-choices" else each)
                for inner, each in value.items()
            }
        else:
            flat[key] = _text(value)
    return flat


def _addresses(lock: Lock) -> set[str]:
    urls = (*(p.file.url for p in lock.python if "://" in p.file.url), *(p.url for p in lock.conda))
    return set(map(_address, urls))


def _address(url: str) -> str:
    """Return scheme and host."""
    found = urlsplit(url)
    return f"{found.scheme}://{found.netloc}"


def _own_files(lock: Lock) -> dict[str, str]:
    if lock.own_files is None:
        return {}
    return {"version": lock.own_files.version, **lock.own_files.sha256}


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _packages(
    kind: Literal["python", "conda", "debian"],
    old: Mapping[str, _Item],
    new: Mapping[str, _Item],
    hosts: Container[str],
) -> Iterable[Change]:
    nothing = _Item("", 0, "")
    known = {item.origin for item in old.values()}
    for name in old.keys() | new.keys():
        before, after = old.get(name, nothing), new.get(name, nothing)
        if before.content == after.content and before.text == after.text:
            yield from _entries(kind, name, before, after, hosts)
            continue
        meaning, why = _MEANING_OF[kind](name)
        # What is known of a package's name says nothing of bytes that nobody has seen before.
        if name not in old:
            meaning, why = _at_least_behaviour(meaning), f"not there before; {why}"
        elif before.text == after.text:
            meaning, why = _at_least_behaviour(meaning), f"the same version from other bytes; {why}"
        if name in old and name in new:
            if kind == "debian":  # any archive of the old lock, and the same source package there
                folder = before.origin.partition(":")[2]
                known = {f"{item.origin.partition(':')[0]}:{folder}" for item in old.values()}
            if after.origin not in known:
                meaning = _at_least_behaviour(meaning)
                place = quote(after.origin, safe=" :/@+~%")  # of an author who may write Markdown
                why = f"now from {place}, which the old lock does not have; {why}"
            elif meaning == "nothing":
                why = f"{why}, if it is what its name says"
        yield Change(
            kind=kind,
            name=name,
            old=before.text or None,
            new=after.text or None,
            old_size=before.size,
            new_size=after.size,
            meaning=meaning,
            why=why,
        )


def _entries(
    kind: Literal["python", "conda", "debian"], name: str, old: _Item, new: _Item, hosts: Container[str]
) -> Iterable[Change]:
    """Return what differs in the lock about the same bytes of the same version.

    A host that is not among ``hosts``, those of the old lock, is told once for all packages: ``addresses``.
    """
    for key in old.entry.keys() | new.entry.keys():
        before, after = old.entry.get(key), new.entry.get(key)
        if before and after and key.endswith("url") and "://" in after and _address(after) not in hosts:
            continue
        if before != after:
            yield Change(
                kind=kind,
                name=f"{name}: {key}",
                old=before,
                new=after,
                meaning="nothing",
                why=_OF_THE_SAME,
            )


def _build_tools(old: Lock, new: Lock) -> Iterable[Change]:
    """Return what differs in what packages without a wheel are built with."""
    before, after = _tools(old), _tools(new)
    for name in before.keys() | after.keys():
        sides = [side.get(name, []) for side in (before, after)]
        if sides[0] == sides[1]:
            continue
        texts = [", ".join(entry["version"] for entry in side) for side in sides]
        if texts[0] == texts[1]:
            texts = [", ".join(text for entry in side for text in entry.values()) for side in sides]
        yield Change(
            kind="request",
            name=f"built-with.{name}",
            old=texts[0] or None,
            new=texts[1] or None,
            meaning="nothing",
            why="packages are built with it, and say what came of it",
        )


def _tools(lock: Lock) -> dict[str, list[dict[str, str]]]:
    """Return the entries of build tools by name, of which there may be several versions."""
    found: dict[str, list[dict[str, str]]] = {}
    for python in lock.build.python:
        found.setdefault(python.name, []).append(_entry(python.table()))
    for deb in lock.build.debian:
        found.setdefault(deb.name, []).append(_entry(deb.table()))
    return found


def _at_least_behaviour(meaning: Meaning) -> Meaning:
    return "behaviour" if meaning == "nothing" else meaning


def _platforms(old: Iterable[str], new: Iterable[str]) -> tuple[Change, ...]:
    """Return the change of which platforms there are; nothing is compared of one that only one side has."""
    before, after = (", ".join(sorted(each)) for each in (old, new))
    if before == after:
        return ()
    why = "images for these platforms come or go; their packages are not compared"
    return (Change(kind="request", name="platforms", old=before, new=after, meaning="behaviour", why=why),)


def _values(
    kind: Literal["variable", "request", "reprobuild"], old: Mapping[str, str], new: Mapping[str, str]
) -> Iterable[Change]:
    for name in old.keys() | new.keys():
        if old.get(name) == new.get(name):
            continue
        meaning: Meaning
        if kind == "variable":
            meaning, why = "numbers", "set in the image so that results stay the same"
        elif kind == "reprobuild":
            meaning, why = _OWN_FILES.get(name, ("nothing", "it tests the image, and no program runs it"))
        elif name == "addresses":
            meaning, why = "nothing", "where files are fetched; their hashes decide what they are"
        elif _SAME_BYTES.fullmatch(name):
            meaning, why = "nothing", _OF_THE_SAME
        elif name == "user":
            meaning, why = "behaviour", "the user that programs run as"
        elif _REQUEST_NUMBERS.fullmatch(name):
            meaning, why = "numbers", "decides what computes, and how"
        else:
            meaning, why = "nothing", "the packages say what came of it"
        before, after = old.get(name), new.get(name)
        if kind == "reprobuild" and name != "version" and (before or "")[:12] != (after or "")[:12]:
            before, after = before and before[:12], after and after[:12]
        yield Change(kind=kind, name=name, old=before, new=after, meaning=meaning, why=why)
