"""The packages of a lock: what is locked of each, and its entry in the file, written and read back. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from ..request.build import DEBIAN_NAME
from ..request.direct import Direct
from ..request.model import is_version
from ..request.table import Table, TableError

SourceKind = Literal["sdist", "archive", "vcs", "directory"]

_SDIST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*\.(tar\.gz|tgz|tar\.bz2|tar\.xz|zip)")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PIN = re.compile(rf"{_NAME.pattern}==[A-Za-z0-9.+!-]+")
_WHEEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*\.whl")
_POOL_PATH = re.compile(r"pool/(?!(?:.*/)?\.\./)[A-Za-z0-9+.~_/-]+\.deb")
_DEBIAN_VERSION = re.compile(r"(?!\.\.\Z)[A-Za-z0-9.+~:-]+")
_CONDA_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*\.(conda|tar\.bz2)")
_CONDA_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]*")
_SUBDIRS = ("linux-64", "linux-aarch64", "noarch")
_MD5 = re.compile("[0-9a-f]{32}")
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

_ADDRESSED: Mapping[SourceKind, tuple[str, ...]] = {
    "archive": ("url", "size", "hashes", "subdirectory"),
    "vcs": ("type", "url", "requested-revision", "commit-id", "subdirectory"),
    "directory": ("path", "subdirectory"),
}
"""The keys of a source that a request names by its address, by the kind of PEP 751."""
_DIRECT = {"archive": "archive", "vcs": "git", "directory": "folder"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """What is installed of a Python package on the lock's platform."""

    filename: str
    url: str
    """Without user name or password; those come from the user's settings when it is fetched. Empty where it
    is built from a `SourceArchive`."""
    sha256: str
    size: int
    """Bytes."""
    uploaded: datetime | None = None
    """Its publication time on the index (UTC, whole seconds)."""

    @classmethod
    def read(cls, table: Table, name: str, version: Version, *, built: bool = False) -> Wheel:
        """Check an entry of a package's wheel. Raises `TableError`."""
        table.only(("name", "size", "hashes") if built else _FILE_KEYS)
        filename = table.text("name", _WHEEL.fullmatch, "the file name of a wheel")
        try:
            found = parse_wheel_filename(filename)[:2]
        except InvalidWheelFilename:
            found = None
        if found != (name, version):  # newer versions of packaging have looked already
            raise table.bad("name", f"{filename!r} is not a wheel of {name} {version}")
        return cls(
            filename=filename,
            url="" if built else _url(table),
            sha256=table.table("hashes", ("sha256",)).sha256(),
            size=table.size(),
            uploaded=_uploaded(table),
        )

    def table(self) -> dict[str, Any]:
        """Return its entry."""
        return _file_table(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceArchive:
    """What a wheel is built from, where the package has none for the lock's platform."""

    kind: SourceKind = "sdist"
    """The key of the package's entry that has it, by PEP 751."""
    filename: str
    url: str
    """Without user name or password. Of ``directory`` the path of a folder, from that of the requests."""
    sha256: str
    size: int
    """Bytes."""
    uploaded: datetime | None = None
    """Its publication time on the index (UTC, whole seconds)."""
    commit: str = ""
    """Of ``vcs``, which is git; then hash and size are those of its tree as an archive (`source_tree`)."""
    ref: str = ""
    """The branch, tag or commit by which the request names it; empty: HEAD."""
    subdirectory: str = ""
    """Where the project is in it."""
    requires: tuple[str, ...] = ()
    """What is installed for the build, each as ``NAME==VERSION``, sorted: the wheels are in the lock's
    `BuildFiles`, else among its own packages."""

    @property
    def address(self) -> str:
        """How a request names it, a commit in the place of a branch; empty for ``sdist``."""
        below = f"#subdirectory={self.subdirectory}" if self.subdirectory else ""
        if self.kind == "sdist":
            return ""
        return (f"git+{self.url}@{self.commit}" if self.kind == "vcs" else self.url) + below

    @classmethod
    def read(cls, package: Table, kind: SourceKind, name: str, tree: Table | None) -> SourceArchive:
        """Check the entry of a package's source; ``tree`` has hash and size where that has no place for them.

        PEP 751 has none for a tree of files as an archive. Raises `TableError`.
        """
        table = package.table(kind)
        if kind == "sdist":
            table.only(_FILE_KEYS)
            return cls(
                filename=table.text("name", _SDIST.fullmatch, "the file name of a source archive"),
                url=_url(table),
                sha256=table.table("hashes", ("sha256",)).sha256(),
                size=table.size(),
                uploaded=_uploaded(table),
            )
        table.only(_ADDRESSED[kind])
        url = table.value("path" if kind == "directory" else "url", str)
        ref, under = table.value("requested-revision", str, ""), table.value("subdirectory", str, "")
        commit = ""
        if kind == "vcs":
            table.choice("type", ("git",))
            commit = table.text("commit-id", COMMIT.fullmatch, "the whole hash of a commit")
        written = f"git+{url}" + (f"@{ref}" if ref else "") if kind == "vcs" else url
        try:
            direct = Direct.parse(written + (f"#subdirectory={under}" if under else ""))
        except ValueError as error:
            raise package.bad(kind, str(error)) from None
        if direct.kind != _DIRECT[kind] or (direct.url, direct.ref, direct.subdirectory) != (url, ref, under):
            raise package.bad(kind, f"{url!r} is not a {_DIRECT[kind]}")
        sized = tree or table
        filename = unquote(url.rpartition("/")[2])
        if kind != "archive":
            filename = f"{name}-{commit[:12]}.tar" if kind == "vcs" else f"{name}.tar"
        return cls(
            kind=kind,
            filename=filename,
            url=url,
            sha256=sized.table("hashes", ("sha256",)).sha256(),
            size=sized.size(),
            commit=commit,
            ref=ref,
            subdirectory=under,
        )

    def table(self) -> dict[str, Any]:
        """Return its entry."""
        under = {"subdirectory": self.subdirectory} if self.subdirectory else {}
        match self.kind:
            case "sdist":
                return _file_table(self)
            case "archive":
                return {"url": self.url, "size": self.size, "hashes": {"sha256": self.sha256}, **under}
            case "vcs":
                ref = {"requested-revision": self.ref} if self.ref else {}
                return {"type": "git", "url": self.url, **ref, "commit-id": self.commit, **under}
            case "directory":
                return {"path": self.url, **under}


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonPackage:
    """A distribution, by its normalised name."""

    name: str
    version: str
    wheel: Wheel
    source: SourceArchive | None = None
    """What its wheel is built from; None where the wheel itself is fetched."""

    @property
    def file(self) -> Wheel | SourceArchive:
        """What is fetched of it."""
        return self.source or self.wheel

    @property
    def pin(self) -> str:
        """``NAME==VERSION``"""
        return f"{self.name}=={self.version}"

    @classmethod
    def read(cls, table: Table) -> PythonPackage:
        """Check an entry of a package. Raises `TableError`."""
        name = table.text("name", _NAME.fullmatch, "a normalised name")
        version = Version(table.text("version", is_version, "a version"))
        kinds: list[SourceKind] = ["sdist", *_ADDRESSED]
        kind = next((key for key in kinds if table.has(key)), None)
        if kind is None:
            table.only(("name", "version", "wheels"))
            wheels = table.tables("wheels")
            if len(wheels) != 1:
                raise table.bad("wheels", f"expected one wheel, found {len(wheels)}")
            return cls(name=name, version=str(version), wheel=Wheel.read(wheels[0], name, version))
        table.only(("name", "version", kind, "tool"))
        own = table.table("tool", ("reprobuild",)).table("reprobuild")
        has_tree = kind in ("vcs", "directory")
        own.only(("wheel", "tree", "requires") if has_tree else ("wheel", "requires"))
        requires = own.texts("requires")
        if not all(map(_PIN.fullmatch, requires)) or requires != sorted(set(requires)):
            raise own.bad("requires", "expected a sorted list like ['setuptools==80.9.0']")
        tree = own.table("tree", ("size", "hashes")) if has_tree else None
        return cls(
            name=name,
            version=str(version),
            wheel=Wheel.read(own.table("wheel"), name, version, built=True),
            source=replace(SourceArchive.read(table, kind, name, tree), requires=tuple(requires)),
        )

    def table(self) -> dict[str, Any]:
        """Return its entry."""
        head = {"name": self.name, "version": self.version}
        if self.source is None:
            return {**head, "wheels": [self.wheel.table()]}
        own: dict[str, Any] = {"wheel": self.wheel.table()}
        if self.source.kind in ("vcs", "directory"):
            own["tree"] = {"size": self.source.size, "hashes": {"sha256": self.source.sha256}}
        own["requires"] = list(self.source.requires)
        return {**head, self.source.kind: self.source.table(), "tool": {"reprobuild": own}}


@dataclass(frozen=True, kw_only=True, slots=True)
class DebianPackage:
    """A binary package. Where it is served is the host's setting, not the lock's."""

    name: str
    version: str
    architecture: str
    archive: str
    """Which of Debian's archives has it: ``debian`` or ``debian-security``."""
    path: str
    """Below the archive's root: ``pool/main/…/….deb``."""
    size: int
    """Bytes."""
    sha256: str

    @property
    def filename(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @classmethod
    def read(cls, table: Table) -> DebianPackage:
        """Check an entry of a Debian package. Raises `TableError`."""
        table.only(("name", "version", "architecture", "archive", "path", "size", "sha256"))
        return cls(
            name=table.text("name", DEBIAN_NAME.fullmatch, "a Debian package's name"),
            version=table.text("version", _DEBIAN_VERSION.fullmatch, "a Debian version"),
            architecture=table.text("architecture", re.compile(r"[a-z0-9]+").fullmatch, "one like amd64"),
            archive=table.text("archive", re.compile(r"[a-z][a-z-]*").fullmatch, "one like debian-security"),
            path=table.text("path", _POOL_PATH.fullmatch, "one like pool/main/…/NAME.deb"),
            sha256=table.sha256(),
            size=table.size(),
        )

    def table(self) -> dict[str, Any]:
        """Return its entry."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class CondaPackage:
    """A package of a conda channel."""

    name: str
    version: str
    build: str
    subdir: str
    """``linux-64``, ``linux-aarch64`` or ``noarch``."""
    url: str
    """Without user name or password."""
    sha256: str
    md5: str | None
    """For other tools only; nothing here trusts it."""
    size: int
    """Bytes."""
    depends: tuple[str, ...]
    """Match specs."""
    uploaded: datetime | None = None
    """When the package was built (UTC, whole seconds)."""
    constrains: tuple[str, ...] = ()
    """Match specs of what need not be there, but if it is, must fit."""

    @property
    def filename(self) -> str:
        """The last part of the address."""
        return self.url.rpartition("/")[2]

    @property
    def is_python(self) -> bool:
        """Whether it holds Python modules; then it is a distribution, as pip sees it."""
        return self.name != "pip" and any(spec.split(" ")[0] == "python" for spec in self.depends)

    @property
    def distribution(self) -> str:
        """What pip calls it; it is but for PyTorch the package's own name."""
        return _DISTRIBUTIONS.get(self.name, self.name)

    @classmethod
    def read(cls, table: Table) -> CondaPackage:
        """Check an entry of a conda package. Raises `TableError`."""
        table.only(
            (
                *("name", "version", "build", "subdir", "url", "size", "sha256", "md5", "upload-time"),
                *("depends", "constrains"),
            )
        )
        url = _url(table)
        if not _CONDA_FILE.fullmatch(url.rpartition("/")[2]):
            raise table.bad("url", "does not name a conda package")
        return cls(
            name=table.text("name", _CONDA_WORD.fullmatch, "a conda package's name"),
            version=table.text("version", _CONDA_WORD.fullmatch, "a conda version"),
            build=table.text("build", _CONDA_WORD.fullmatch, "a conda build string"),
            subdir=table.choice("subdir", _SUBDIRS),
            url=url,
            sha256=table.sha256(),
            md5=table.text("md5", _MD5.fullmatch, "32 lower-case hex digits", None),
            size=table.size(),
            depends=tuple(table.texts("depends", _line)),
            uploaded=_uploaded(table),
            constrains=tuple(table.texts("constrains", _line, ())),
        )

    def table(self) -> dict[str, Any]:
        """Return its entry."""
        table: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "build": self.build,
            "subdir": self.subdir,
            "url": self.url,
            "size": self.size,
            "sha256": self.sha256,
        }
        if self.md5 is not None:
            table["md5"] = self.md5
        if self.uploaded is not None:
            table["upload-time"] = self.uploaded
        table["depends"] = list(self.depends)
        return table | ({"constrains": list(self.constrains)} if self.constrains else {})


_DISTRIBUTIONS = {"pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch"}


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildFiles:
    """What source packages are built with and the image does not have. The lists sort themselves."""

    python: Sequence[PythonPackage] = ()
    """Several may be of one name, in different versions."""
    debian: Sequence[DebianPackage] = ()
    """In addition to those of the image."""

    def __post_init__(self) -> None:
        """Sort the lists into canonical order."""
        object.__setattr__(self, "python", tuple(sorted(self.python, key=lambda p: (p.name, p.version))))
        object.__setattr__(self, "debian", tuple(sorted(self.debian, key=lambda p: (p.name, p.architecture))))

    @classmethod
    def read(cls, table: Table) -> BuildFiles:
        """Read it from the lock's table. Raises `TableError`."""
        table.only(("packages", "debian"))
        packages = table.tables("packages", default=())
        for each in packages:
            if not each.has("wheels"):
                raise TableError(f"{each.place}: expected a table with a wheel")
        return cls(
            python=[PythonPackage.read(each) for each in packages],
            debian=[DebianPackage.read(each) for each in table.tables("debian", default=())],
        )

    def table(self) -> dict[str, Any]:
        """Return the lock's table of it."""
        lists = {"packages": [p.table() for p in self.python], "debian": [p.table() for p in self.debian]}
        return {key: tables for key, tables in lists.items() if tables}


_FILE_KEYS = ("name", "upload-time", "url", "size", "hashes")


def _file_table(file: Wheel | SourceArchive) -> dict[str, Any]:
    table: dict[str, Any] = {"name": file.filename}
    if file.uploaded is not None:
        table["upload-time"] = file.uploaded
    if file.url:
        table["url"] = file.url
    return table | {"size": file.size, "hashes": {"sha256": file.sha256}}


def _url(table: Table) -> str:
    value = table.value("url", str)
    try:
        parts = urlsplit(value)
        good = parts.scheme == "file" or (parts.scheme in ("https", "http") and bool(parts.hostname))
        secret = parts.username is not None or parts.password is not None
    except ValueError:  # brackets that hold no IPv6 address
        good = secret = False
    if not good or not value.isprintable() or " " in value:
        raise table.bad("url", "expected an https, http or file URL")
    if secret:
        raise table.bad("url", "contains a user name or password")
    return value


def _uploaded(table: Table) -> datetime | None:
    value = table.data.get("upload-time")
    if value is None:
        return None
    try:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC).replace(microsecond=0)
    except OverflowError:  # a zone that moves it out of the years 1 to 9999
        pass
    raise table.bad("upload-time", f"{value} is not a time with a time zone")


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected one line of text")
    return text
