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
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import Version

from ..errors import RequestError
from .build import Build, build, debian_name, requirement
from .direct import Direct
from .environment import environment
from .image_user import ImageUser, image_user
from .kernels import Kernels, kernels, kinds
from .reference import base_image
from .seed_by_rank import seed_by_rank
from .table import Table, TableError, refused_as
from .toml_reader import load_toml

Profile = Literal["strict", "portable"]
TorchIndex = Literal["pytorch"]
PLATFORMS = ("linux/amd64", "linux/arm64")
"""As in OCI."""

DEFAULT_PYTHON = "3.11"
DEFAULT_SUITE = "bookworm"
DEBIAN_PYTHONS = {DEFAULT_PYTHON: DEFAULT_SUITE, "3.13": "trixie", "3.9": "bullseye"}
"""The release that has a Python, which is taken where the request names none; the default first."""
DEBIAN_PATCHES = {"3.9": "3.9.2", "3.11": "3.11.2", "3.13": "3.13.5"}
"""The version that each of these is of: a release of Debian keeps it (https://packages.debian.org/python3.13)."""
PYTHONS = (DEFAULT_PYTHON, "3.13", "3.12", "3.10", "3.14", "3.9", "3.8")
"""What a file may get that allows several, the first that it allows: those of Debian's releases that have
security updates, then standalone builds, then what has none."""

_PYTHON_OF = {suite: python for python, suite in DEBIAN_PYTHONS.items()}

_NAME = re.compile(r"(?=.{1,100}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_MINOR = re.compile(r"(?:0|[1-9][0-9]{0,3})\.(?:0|[1-9][0-9]{0,3})")
_CUDA = re.compile(f"cpu|{_MINOR.pattern}")
_SUITE = re.compile(r"[a-z]+")
_KEYS = (
    *("name", "python", "platforms", "cuda", "torch", "index", "packages", "constraints", "overrides"),
    *("allow-bad-record", "file-priority", "only-wheels", "loosened", "apt", "as-of", "conda", "base"),
    *("build", "user", "determinism", "environment"),
)
_CONDA_KEYS = ("environment", "channels", "packages")
_BASE_KEYS = ("debian", "image", "allow-cuda")
_DETERMINISM_KEYS = ("profile", "seed", "seed-by-rank", "threads", "fill", "kernels", "kernel-choices")

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
    """The requested content of an image. Create one with `parse` or `from_dict`, which check every field."""

    name: str
    """Names the files ``envs/NAME.toml`` and ``envs/pylock.NAME.toml``: lower case, digits, single dashes."""
    cuda: str
    """A CUDA minor version such as ``12.1``, or ``cpu``."""
    python: str = DEFAULT_PYTHON
    """A Python minor version; the Debian release, or the standalone build, decides the patch version."""
    platforms: tuple[str, ...] = ()
    """Platforms to lock, as OCI names them, sorted; empty: that of this machine."""
    torch: str | None = None
    """A version, or a range like ``>=2.4,<2.6``, of which the newest with wheels for this CUDA is chosen."""
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
    """Build requirements and settings of packages without a wheel."""
    conda: Conda | None = None
    """When set, Python comes from conda, and torch too where a package of conda's asks for it."""
    as_of: date | None = None
    """Cut-off date (UTC) of published files."""
    suite: str = DEFAULT_SUITE
    """The Debian release under the image, by code name; not asked where there is a `base_image`."""
    base_image: str | None = None
    """An image of a registry to build on, in place of a Debian release."""
    allow_cuda: bool = False
    """Whether the base image may ship its own CUDA libraries."""
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
    user: ImageUser | None = None
    """The user that the image's programs run as, added to those of its system; None: root."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of the image beside those that reprobuild sets, sorted by name."""

    @classmethod
    def parse(cls, text: str, where: str, name: str | None = None) -> Request:
        """Read a request file's text; ``name`` is the default of its name.

        Raises `RequestError` that begins with ``where`` and the key.
        """
        data = cls.load(text, where)
        return cls.from_dict(data if name is None else {"name": name, **data}, where)

    @staticmethod
    def load(text: str, where: str) -> dict[str, Any]:
        """Parse a request file's text into an unchecked table. Raises `RequestError`."""
        try:
            return load_toml(text)
        except ValueError as error:
            # Not only TOMLDecodeError: a number of 5,000 digits is a plain ValueError.
            raise RequestError(f"{where}: not valid TOML: {error}") from None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str) -> Request:
        """Validate a table of a request file. Raises `RequestError`, which names ``where`` and the key."""
        with refused_as(RequestError, where):
            return cls.read(Table(data))

    @classmethod
    def read(cls, get: Table) -> Request:
        """Validate a table of a request file. Raises `TableError`."""
        get.only(_KEYS)
        base = get.table("base", _BASE_KEYS, {})
        determinism = get.table("determinism", _DETERMINISM_KEYS, {})
        if not get.has("cuda"):
            raise get.bad("cuda", 'missing; give a version like "12.1", or "cpu"')
        cuda = get.text("cuda", _CUDA.fullmatch, '"cpu" or a version like "12.1"')
        python = get.text("python", _MINOR.fullmatch, 'a minor version like "3.11"', DEFAULT_PYTHON)
        name = "lower-case letters, digits and single dashes, at most 100"
        index = '"pytorch"; other indexes are set in uv or pip'
        return cls(
            name=get.text("name", _NAME.fullmatch, name, default_name(cuda, python)),
            cuda=cuda,
            python=python,
            platforms=get.sorted("platforms", _platform),
            torch=_torch_version(get),
            index="pytorch" if get.text("index", "pytorch".__eq__, index, None) else None,
            packages=get.sorted("packages", _requirement),
            constraints=get.sorted("constraints", _requirement),
            overrides=get.sorted("overrides", lambda text: text if text == "torch" else _requirement(text)),
            allow_bad_record=get.sorted("allow-bad-record", _package),
            file_priority=get.sorted("file-priority", _package),
            only_wheels=get.flag("only-wheels"),
            build=build(get),
            loosened=get.sorted("loosened", _line),
            apt=get.sorted("apt", debian_name),
            conda=_conda(get),
            as_of=get.value("as-of", date, None),
            suite=base.text(
                "debian",
                _SUITE.fullmatch,
                'a release\'s code name like "bookworm"',
                DEFAULT_SUITE if get.has("conda") else DEBIAN_PYTHONS.get(python, DEFAULT_SUITE),
            ),
            base_image=base_image(base),
            allow_cuda=base.flag("allow-cuda"),
            profile=determinism.choice("profile", get_args(Profile), "strict"),
            seed=determinism.integer("seed", 0, 2**32 - 1, None),
            seed_by_rank=seed_by_rank(determinism),
            threads=determinism.integer("threads", 1, 1024, 1),
            fill=determinism.flag("fill"),
            kernels=kernels(determinism),
            user=image_user(get),
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
        if self.user is not None:
            table["user"] = str(self.user)
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
        return f"=={self.torch}" if is_version(self.torch) else self.torch

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
    if not table.has("conda"):
        return None
    conda = table.table("conda", _CONDA_KEYS)
    if conda.has("environment"):
        # `workspace.read_env` has put the file's content in its place.
        raise conda.bad("environment", "can only be set in a request file")
    channels = tuple(conda.texts("channels", default=()))
    packages = conda.sorted("packages")
    if "defaults" in channels:
        raise conda.bad(
            "channels",
            "'defaults' is not a channel but the name of several of Anaconda's",
            "name conda-forge in its place, or each of Anaconda's channels by its address",
        )
    for key, values, form, kind in (
        ("channels", channels, _CONDA_CHANNEL, "a channel's name, or its address without a password"),
        ("packages", packages, _CONDA_SPEC, 'a match spec like "numpy >=1.26"'),
    ):
        if not values:
            raise conda.bad(key, "missing; name at least one")
        wrong = [value for value in values if not form.fullmatch(value)]
        if wrong:
            raise conda.bad(key, f"{wrong[0]!r} is not valid: expected {kind}")
    return Conda(channels=channels, packages=packages)


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
    """Return the key torch in its one spelling."""
    form = 'a version like "2.4.1", or a range like ">=2.4,<2.6"'
    text = table.text("torch", _is_version_or_range, form, None)
    if text is None:
        return None
    return str(Version(text)) if is_version(text) else str(SpecifierSet(text))


def _platform(text: str) -> str:
    if text not in PLATFORMS:
        raise ValueError(f"{text!r} is not one of {', '.join(PLATFORMS)}")
    return text


def is_version(text: str) -> bool:
    """Whether it is one version, and no range."""
    try:
        Version(text)
    except ValueError:  # InvalidVersion is one; so is a number of 5,000 digits
        return False
    return True


def _is_version_or_range(text: str) -> bool:
    if is_version(text):
        return True
    try:
        return len(SpecifierSet(text)) > 0 and "===" not in text
    except (InvalidSpecifier, ValueError):
        return False


def _requirement(text: str) -> str:
    """Return a requirement in its one spelling."""
    found = requirement(text)
    if found.name.lower() == "torch":
        raise TableError("torch has a key of its own", 'write torch = "2.4.1", or give --torch 2.4.1')
    if found.url is not None:
        try:
            found.url = str(Direct.parse(found.url))
        except ValueError as error:
            raise ValueError(f"{found.name}: {error}") from None
    return str(found)


def _package(text: str) -> str:
    """Return the normalised name of a Python package."""
    try:
        return canonicalize_name(text, validate=True)
    except InvalidName:
        raise ValueError(f"{text!r} is not a valid name of a package") from None


def _line(text: str) -> str:
    if not text.isprintable() or not text:
        raise ValueError("expected one line of text")
    return text
