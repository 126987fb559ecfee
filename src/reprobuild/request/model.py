"""The request: what a person asks for, as TOML (``envs/<name>.toml``) or as flags. Pure data."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, get_args

import tomli_w
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import Version

from ..errors import RequestError
from .build import Build, build
from .direct import Direct
from .environment import environment
from .kernels import Kernels, kernels, kinds
from .reference import base_image
from .seed import seed_by_rank
from .toml_reader import Table, load_toml

Profile = Literal["strict", "portable"]
TorchIndex = Literal["pytorch"]
PLATFORMS = ("linux/amd64", "linux/arm64")
"""As in OCI."""

_DEBIAN_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")

DEFAULT_PYTHON = "3.11"
DEFAULT_SUITE = "bookworm"
DEBIAN_PYTHONS = {DEFAULT_PYTHON: DEFAULT_SUITE, "3.13": "trixie", "3.9": "bullseye"}
"""The release that has a Python, which is taken where the request names none; the default first."""
PYTHONS = (DEFAULT_PYTHON, "3.13", "3.12", "3.10", "3.14", "3.9", "3.8")
"""What a file may get that allows several, the first that it allows: those of Debian's releases that have
security updates, then standalone builds, then what has none."""

_PYTHON_OF = {suite: python for python, suite in DEBIAN_PYTHONS.items()}

_NAME = re.compile(r"(?=.{1,100}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_MINOR = re.compile(r"(?:0|[1-9][0-9]{0,3})\.(?:0|[1-9][0-9]{0,3})")
_SUITE = re.compile(r"[a-z]+")
_KEYS = {
    "": (
        *("name", "python", "platforms", "cuda", "torch", "index"),
        *("packages", "constraints", "overrides", "allow-bad-record", "file-priority", "only-wheels"),
        *("loosened", "apt", "as-of", "conda", "base", "build"),
        *("determinism", "environment"),
    ),
    "conda.": ("environment", "channels", "packages"),
    "base.": ("debian", "image", "allow-cuda"),
    "determinism.": ("profile", "seed", "seed-by-rank", "threads", "fill", "kernels", "kernel-choices"),
}


_CONDA_CHANNEL = re.compile(r"(?:(?:https?|file)://)?[A-Za-z0-9_./:~%-]+")
_CONDA_SPEC = re.compile(r"(?:[A-Za-z0-9_./-]+::)?[A-Za-z0-9_][A-Za-z0-9_.-]*[A-Za-z0-9_.,|=<>!~*+ -]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Conda:
    """The conda part of a request."""

    channels: tuple[str, ...]
    """Names or addresses, those of higher priority first."""
    packages: tuple[str, ...]
    """Match specs, sorted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the image shall hold. Make one with `parse` or `from_dict`, which check every field."""

    name: str
    """Names the files ``envs/NAME.toml`` and ``envs/pylock.NAME.toml``: lower case, digits, single dashes."""
    cuda: str
    """A CUDA minor version such as ``12.1``, or ``cpu``."""
    python: str = DEFAULT_PYTHON
    """A Python minor version; the Debian release, or the standalone build, decides the patch version."""
    platforms: tuple[str, ...] = ()
    """As in OCI, sorted: what the lock shall hold; empty: what the machine is that locks."""
    torch: str | None = None
    """A version, or a range like ``>=2.4,<2.6``; the newest whose wheels ask for this CUDA is taken."""
    index: TorchIndex | None = None
    """``pytorch``: torch and its kin come from PyTorch's own index for this CUDA; None: from the user's."""
    packages: tuple[str, ...] = ()
    """PEP 508 requirements, sorted; an address is one that `Direct` takes."""
    constraints: tuple[str, ...] = ()
    """PEP 508 requirements that hold where something asks for the package, sorted."""
    overrides: tuple[str, ...] = ()
    """PEP 508 requirements in place of all that any package asks for, sorted. With a marker that does not
    hold, a package is left out; ``torch`` alone stands for the key torch."""
    allow_bad_record: tuple[str, ...] = ()
    """Packages whose wheels may differ from their own RECORD, normalised and sorted."""
    file_priority: tuple[str, ...] = ()
    """Packages whose files win over those of others with the same path, normalised and sorted."""
    only_wheels: bool = False
    """Whether a package without a wheel is refused; else it is built from its source archive."""
    loosened: tuple[str, ...] = ()
    """What an imported file asks for and the request does not, since its user said so; for the record."""
    apt: tuple[str, ...] = ()
    """Names of Debian packages, sorted."""
    build: Build = field(default_factory=Build)
    """What packages without a wheel are built with."""
    conda: Conda | None = None
    """When set, Python comes from conda, and torch too where a package of conda's asks for it."""
    as_of: date | None = None
    """Nothing published on a later day (UTC)."""
    suite: str = DEFAULT_SUITE
    """The Debian release under the image, by code name; not asked where there is a `base_image`."""
    base_image: str | None = None
    """An image of a registry to build on, in place of a Debian release."""
    allow_cuda: bool = False
    """Whether the base image may have CUDA libraries of its own."""
    profile: Profile = "strict"
    seed: int | None = None
    """When set, seeds torch, NumPy and ``random`` at the start of every Python process."""
    seed_by_rank: bool = False
    """Whether each rank of a distributed program gets a seed of its own, made from ``seed``."""
    threads: int = 1
    """CPU threads of an operation; part of what decides the bits."""
    fill: bool = False
    """Whether torch fills new memory with NaN: a program that reads what it has not written repeats too."""
    kernels: Kernels = field(default_factory=Kernels)
    """What torch.compile and Triton choose by timing."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of the image beside those that reprobuild sets, sorted by name."""

    @classmethod
    def parse(cls, text: str, where: str, name: str | None = None) -> Request:
        """Read a request file's text; ``name`` counts where it has none.

        Raises `RequestError` that begins with ``where`` and the key.
        """
        data = cls.load(text, where)
        return cls.from_dict(data if name is None else {"name": name, **data}, where)

    @staticmethod
    def load(text: str, where: str) -> dict[str, Any]:
        """Read a request file's text as a table that nothing has checked. Raises `RequestError`."""
        try:
            return load_toml(text)
        except ValueError as error:
            # Not only TOMLDecodeError: a number of 5,000 digits is a plain ValueError.
            raise RequestError(f"{where}: not valid TOML: {error}") from None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str) -> Request:
        """Check a table in the file's form. Raises `RequestError` that begins with ``where`` and the key."""
        get = Table(data, "", where, _KEYS[""])
        base = Table(get.value("base", dict, {}), "base.", where, _KEYS["base."])
        determinism = Table(get.value("determinism", dict, {}), "determinism.", where, _KEYS["determinism."])
        cuda = get.text(
            "cuda", None, lambda v: v == "cpu" or bool(_MINOR.fullmatch(v)), '"cpu" or a version like "12.1"'
        )
        if cuda is None:
            raise RequestError(f'{where}: cuda: missing; give a version like "12.1", or "cpu"')
        python = get.text("python", DEFAULT_PYTHON, _MINOR.fullmatch, 'a minor version like "3.11"')
        name = get.text(
            "name", None, _NAME.fullmatch, "lower-case letters, digits and single dashes, at most 100"
        )
        return cls(
            name=name or default_name(cuda, python),
            cuda=cuda,
            python=python,
            platforms=_platforms(get),
            torch=_torch_version(get),
            index=_torch_index(get),
            packages=tuple(
                sorted({_requirement(get.where("packages", i), p) for i, p in get.texts("packages")})
            ),
            constraints=_rules(get, "constraints"),
            overrides=_rules(get, "overrides"),
            allow_bad_record=_packages(get, "allow-bad-record"),
            file_priority=_packages(get, "file-priority"),
            only_wheels=get.value("only-wheels", bool, False),  # noqa: FBT003 -- as the other keys
            build=build(get),
            loosened=tuple(sorted({_text(get.where("loosened", i), p) for i, p in get.texts("loosened")})),
            apt=tuple(sorted({_debian_name(get.where("apt", i), p) for i, p in get.texts("apt")})),
            conda=_conda(get),
            as_of=_date(get),
            suite=base.text(
                "debian",
                DEBIAN_PYTHONS.get(python, DEFAULT_SUITE) if "conda" not in data else DEFAULT_SUITE,
                _SUITE.fullmatch,
                'a release\'s code name like "bookworm"',
            ),
            base_image=base_image(base),
            allow_cuda=base.value("allow-cuda", bool, False),  # noqa: FBT003 -- as the other keys
            profile=_profile(determinism),
            seed=determinism.integer("seed", None, 0, 2**32 - 1),
            seed_by_rank=seed_by_rank(determinism),
            threads=determinism.integer("threads", 1, 1, 1024),
            fill=determinism.value("fill", bool, False),  # noqa: FBT003 -- as the other keys
            kernels=kernels(determinism),
            environment=environment(get),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the table that `from_dict` reads back to an equal request; defaults are written out."""
        determinism: dict[str, Any] = {"profile": self.profile, "threads": self.threads}
        if self.seed is not None:
            determinism["seed"] = self.seed
        switches = {"seed-by-rank": self.seed_by_rank, "fill": self.fill}
        determinism |= {key: True for key, on in switches.items() if on}
        determinism |= self.kernels.to_dict()
        table: dict[str, Any] = {"name": self.name, "python": self.python, "cuda": self.cuda}
        if self.platforms:
            table["platforms"] = list(self.platforms)
        if self.torch is not None:
            table["torch"] = self.torch
        if self.index is not None:
            table["index"] = self.index
        table["packages"] = list(self.packages)
        if self.only_wheels:
            table["only-wheels"] = True
        lists = {"constraints": self.constraints, "overrides": self.overrides}
        lists |= {"allow-bad-record": self.allow_bad_record, "file-priority": self.file_priority}
        lists |= {"loosened": self.loosened}
        table |= {key: list(values) for key, values in lists.items() if values}
        table["apt"] = list(self.apt)
        if self.as_of is not None:
            table["as-of"] = self.as_of
        if self.conda is not None:
            conda = {"channels": list(self.conda.channels), "packages": list(self.conda.packages)}
            table["conda"] = conda
        base: dict[str, Any] = {"debian": self.suite}
        if self.base_image is not None:
            base = {"image": self.base_image, **({"allow-cuda": True} if self.allow_cuda else {})}
        table |= {"base": base, "determinism": determinism}
        if made := self.build.to_dict():
            table["build"] = made
        return table | ({"environment": dict(self.environment)} if self.environment else {})

    def precedence(self, package: str) -> tuple[bool, str]:
        """Return what packages are sorted by: of those that install one path, the first has its file."""
        return package not in self.file_priority, package

    def dump(self) -> str:
        """Return the canonical TOML text."""
        return tomli_w.dumps(self.to_dict())

    @property
    def is_standalone(self) -> bool:
        """Whether Python is a standalone build, since the Debian release is known to have another one."""
        debian = self.conda is None and self.base_image is None
        return debian and _PYTHON_OF.get(self.suite, self.python) != self.python

    @property
    def torch_specifier(self) -> str:
        """What versions of torch will do, as a requirement has it; empty: any."""
        if self.torch is None:
            return ""
        return f"=={self.torch}" if _is_version(self.torch) else self.torch

    @property
    def digest(self) -> str:
        """``sha256:…`` over the canonical form; equal for requests that mean the same."""
        form = json.dumps(self.to_dict(), sort_keys=True, default=str, separators=(",", ":"))
        return "sha256:" + hashlib.sha256(form.encode()).hexdigest()

    def differences(self, other: Request) -> list[str]:
        """Return a line for each key in which ``other`` differs, as ``key: mine, there other's``."""
        mine, theirs = _flat(self.to_dict()), _flat(other.to_dict())
        return [
            f"{key}: {mine.get(key, 'not set')}, there {theirs.get(key, 'not set')}"
            for key in sorted(mine.keys() | theirs.keys())
            if mine.get(key) != theirs.get(key)
        ]


def flavour(cuda: str) -> str:
    """Return a CUDA as PyTorch writes it in versions and addresses: ``cu121``, ``cpu``."""
    return "cpu" if cuda == "cpu" else "cu" + cuda.replace(".", "")


def default_name(cuda: str, python: str = DEFAULT_PYTHON) -> str:
    """Return the name of a request made from flags: ``torch-cu121``, ``torch-cpu``, ``torch-cu121-py313``."""
    return f"torch-{flavour(cuda)}" + ("" if python == DEFAULT_PYTHON else "-py" + python.replace(".", ""))


def _conda(table: Table) -> Conda | None:
    data = table.value("conda", dict, None)
    if data is None:
        return None
    conda = Table(data, "conda.", table.where("")[:-2], _KEYS["conda."])
    if "environment" in data:
        # `workspace.read_env` has put the file's content in its place.
        raise RequestError(f"{conda.where('environment')}: can only be set in a request file")
    channels = tuple(channel for _, channel in conda.texts("channels"))
    packages = tuple(sorted({spec for _, spec in conda.texts("packages")}))
    if "defaults" in channels:
        raise RequestError(
            f"{conda.where('channels')}: 'defaults' is not a channel but the name of several of Anaconda's",
            hint="name conda-forge in its place, or each of Anaconda's channels by its address",
        )
    for key, values, form, kind in (
        ("channels", channels, _CONDA_CHANNEL, "a channel's name, or its address without a password"),
        ("packages", packages, _CONDA_SPEC, 'a match spec like "numpy >=1.26"'),
    ):
        if not values:
            raise RequestError(f"{conda.where(key)}: missing; name at least one")
        wrong = [value for value in values if not form.fullmatch(value)]
        if wrong:
            raise RequestError(f"{conda.where(key)}: {wrong[0]!r} is not valid: expected {kind}")
    return Conda(channels=channels, packages=packages)


def _date(table: Table) -> date | None:
    value: date | None = table.value("as-of", date, None)
    return value


def _profile(table: Table) -> Profile:
    value: Profile = table.text(
        "profile", "strict", lambda v: v in get_args(Profile), '"strict" or "portable"'
    )
    return value


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        elif key == "kernel-choices":
            flat[prefix + key] = "; ".join(kinds(value)) or "none"
        else:
            flat[prefix + key] = str(value)
    return flat


def _torch_version(table: Table) -> str | None:
    """Return the key torch in its one spelling. Raises `RequestError`."""
    text: str | None = table.text(
        "torch", None, _is_version_or_range, 'a version like "2.4.1", or a range like ">=2.4,<2.6"'
    )
    if text is None:
        return None
    return str(Version(text)) if _is_version(text) else str(SpecifierSet(text))


def _torch_index(table: Table) -> TorchIndex | None:
    """Return the key index. Raises `RequestError`."""
    value: TorchIndex | None = table.text(
        "index",
        None,
        lambda v: v in get_args(TorchIndex),
        '"pytorch"; other indexes are set in uv or pip',
    )
    return value


def _platforms(table: Table) -> tuple[str, ...]:
    """Return the key platforms, sorted. Raises `RequestError`."""
    found = table.texts("platforms")
    for position, name in found:
        if name not in PLATFORMS:
            raise RequestError(
                f"{table.where('platforms', position)}: {name!r} is not one of {', '.join(PLATFORMS)}"
            )
    return tuple(sorted({name for _, name in found}))


def _is_version(text: str) -> bool:
    """Whether it is one version, and no range."""
    try:
        Version(text)
    except ValueError:  # InvalidVersion is one; so is a number of 5,000 digits
        return False
    return True


def _is_version_or_range(text: str) -> bool:
    if _is_version(text):
        return True
    try:
        return len(SpecifierSet(text)) > 0 and "===" not in text
    except (InvalidSpecifier, ValueError):
        return False


def _requirement(where: str, text: str) -> str:
    """Return a requirement in its one spelling. Raises `RequestError`."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise RequestError(
            f"{where}: {text!r} is not a PEP 508 requirement: {str(error).splitlines()[0]}"
        ) from None
    if not str(
        requirement
    ).isprintable():  # a marker may have an escaped line break, which uv would read as one
        raise RequestError(f"{where}: {requirement.name}: has a line break or another control character")
    if requirement.name.lower() == "torch":
        raise RequestError(
            f"{where}: torch has a key of its own",
            hint='write torch = "2.4.1", or give --torch 2.4.1',
        )
    if requirement.url is not None:
        try:
            direct = Direct.parse(requirement.url)
        except ValueError as error:
            raise RequestError(f"{where}: {requirement.name}: {error}") from None
        requirement.url = str(direct)
    return str(requirement)


def _rules(table: Table, key: str) -> tuple[str, ...]:
    """Return the requirements of a key, in their one spelling. Raises `RequestError`."""
    found = {
        text if key == "overrides" and text == "torch" else _requirement(table.where(key, position), text)
        for position, text in table.texts(key)
    }
    return tuple(sorted(found))


def _packages(table: Table, key: str) -> tuple[str, ...]:
    """Return the normalised names of Python packages, sorted. Raises `RequestError`."""
    found: set[str] = set()
    for position, text in table.texts(key):
        try:
            found.add(canonicalize_name(text, validate=True))
        except InvalidName:
            place = table.where(key, position)
            raise RequestError(f"{place}: {text!r} is not a valid name of a package") from None
    return tuple(sorted(found))


def _text(where: str, text: str) -> str:
    """Return one line of text as it is. Raises `RequestError`."""
    if not text.isprintable() or not text:
        raise RequestError(f"{where}: expected one line of text")
    return text


def _debian_name(where: str, text: str) -> str:
    """Return the name as it is. Raises `RequestError`."""
    if not _DEBIAN_NAME.fullmatch(text):
        raise RequestError(f"{where}: {text!r} is not a valid name of a Debian package")
    return text
