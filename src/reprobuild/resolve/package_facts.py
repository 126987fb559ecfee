"""Licenses, dependencies and Debian source packages, from the files of a lock's packages.

The store has them once an image was made. Their bytes are the lock's, but a stranger has written them.
"""

from __future__ import annotations

import email
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from debian.arfile import ArError
from debian.deb822 import Deb822, PkgRelation
from debian.debfile import DebError, DebFile
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..errors import BuildError
from ..fetch.deb_file import control_file, package_files
from ..fetch.store import DAMAGED, Store
from ..fetch.wheel_zip import opened
from ..host.home import Home
from ..lock.bill import Facts
from ..lock.model import Lock
from ..lock.packages import DebianPackage, PythonPackage
from ..oci.stream import Member
from ..oci.tar_fields import LayerRefused
from .target import TargetPython, holds
from .wheel_bills import with_own_bills

_MOST = 16 << 20
"""Bytes of a file of metadata, or of a license."""
_LONGEST_NAME = 100
"""Characters of a license's name; a longer value is its text."""
_COMMON = re.compile(r"/usr/share/common-licenses/([A-Za-z0-9.+-]*[A-Za-z0-9+])")
_LICENSE = re.compile(r"^License:[ \t]*(\S.*)$", re.MULTILINE | re.IGNORECASE)


def facts_of(lock: Lock, home: Home) -> Mapping[str, Facts]:
    """Return what is known of the packages whose files are in the store, by the SHA-256 of the file.

    Raises `BuildError` for a file that cannot be read as what it is.
    """
    store = Store(home)
    stored = [p for p in lock.debian if store.path(p.sha256).is_file()]
    with ThreadPoolExecutor(2) as threads:
        read = list(threads.map(lambda p: _deb(p, store.path(p.sha256)), stored))
    debian = {p.name: deb for p, deb in zip(stored, read, strict=True)}
    found: dict[str, Facts] = {p.sha256: _debian_facts(p, debian, lock) for p in stored}
    return {**found, **facts_of_wheels(lock, home)}


def facts_of_wheels(lock: Lock, home: Home) -> Mapping[str, Facts]:
    """Return the facts of Python packages alone, which takes a tenth of a second.

    A damaged wheel counts as none; it is named and removed.
    """
    store = Store(home)
    wheels = [p for p in lock.python if store.has(p.wheel.sha256, p.wheel.size)]
    found = _python_facts(lock, {p: _metadata(p, store.path(p.wheel.sha256)) for p in wheels})
    return {
        p.wheel.sha256: with_own_bills(found[p.wheel.sha256], p, store.path(p.wheel.sha256)) for p in wheels
    }


# --- Python ---


def _metadata(package: PythonPackage, file: Path) -> email.message.Message:
    with opened(file, package.name) as archive:
        for info in archive.infolist():
            if re.fullmatch(r"[^/]+\.dist-info/METADATA", info.filename) and info.file_size <= _MOST:
                return email.message_from_string(archive.read(info).decode("utf-8", "replace"))
    raise BuildError(f"{package.wheel.filename}: the wheel has no METADATA")


def _python_facts(lock: Lock, metadata: Mapping[PythonPackage, email.message.Message]) -> Mapping[str, Facts]:
    files = {p.name: p.wheel.sha256 for p in lock.python}
    edges = _edges(lock, {p.name: _requirements(text) for p, text in metadata.items()})
    found = {}
    for package, text in metadata.items():
        expression, names = _python_license(text)
        requires = [files[name] for name in sorted(edges[package.name]) if name in files]
        found[package.wheel.sha256] = Facts(expression=expression, licenses=names, requires=requires)
    return found


def _python_license(metadata: email.message.Message) -> tuple[str, Sequence[str]]:
    """Return the license as an expression (PEP 639), else as names: of classifiers, else as it is called."""
    said = str(metadata["License"] or "").strip()
    for text in (str(metadata["License-Expression"] or ""), said):
        try:
            if text:
                return canonicalize_license_expression(text), ()
        except InvalidLicenseExpression:
            continue
    classifiers = [str(c) for c in metadata.get_all("Classifier", []) if str(c).startswith("License ::")]
    named = {c.rpartition("::")[2].strip() for c in classifiers} - {"OSI Approved"}
    if not named and said and "\n" not in said and len(said) <= _LONGEST_NAME:
        named = {said}
    return "", sorted(named)


def _requirements(metadata: email.message.Message) -> list[Requirement]:
    found = []
    for line in metadata.get_all("Requires-Dist", []):
        try:
            found.append(Requirement(str(line)))
        except InvalidRequirement:  # never valid, and no installer reads it
            continue
    return found


def _edges(lock: Lock, requirements: Mapping[str, Sequence[Requirement]]) -> Mapping[str, set[str]]:
    """Return the names that each package requires, with the extras by which others require it."""
    architecture = lock.platform.partition("/")[2]
    version = lock.stack.get("python", "")
    target = TargetPython(lock.request.python, architecture, (2, 17), version)
    extras: dict[str, set[str]] = {name: {""} for name in requirements}
    for text in lock.request.packages:
        asked = Requirement(text)
        extras.setdefault(canonicalize_name(asked.name), {""}).update(asked.extras)
    edges: dict[str, set[str]] = {name: set() for name in requirements}
    changed = True
    while changed:
        changed = False
        for name, wanted in requirements.items():
            for each in wanted:
                markers = ({**target.markers, "extra": extra} for extra in extras[name])
                if not any(holds(each.marker, m) for m in markers):
                    continue
                other = canonicalize_name(each.name)
                edges[name].add(other)
                if each.extras - extras.setdefault(other, {""}):
                    extras[other] |= each.extras
                    changed = True
    return edges


# --- Debian ---


@dataclass(slots=True)
class _Deb:
    """A package's own words."""

    control: Deb822
    copyright: str = ""
    documents_of: str = ""
    """The package whose folder of documents is its own, too."""
    provides: Sequence[str] = field(default_factory=tuple)


def _deb(package: DebianPackage, file: Path) -> _Deb:
    try:
        with file.open("rb") as opened_file, DebFile(fileobj=opened_file) as deb:
            found = _Deb(control=control_file(deb))
            found.provides = [name for group in _relations(found.control, "Provides") for name in group]
            _read_documents(package.name, package_files(deb, "data.tar"), found)
            return found
    except (ArError, DebError, LayerRefused, ValueError) as error:
        raise BuildError(f"{package.filename}: not a Debian package: {error}", hint=DAMAGED) from None


def _read_documents(name: str, files: Iterable[Member], found: _Deb) -> None:
    """Read the file ``copyright``, or the link in place of its folder (Debian policy, 12.3 and 12.5)."""
    folder = f"usr/share/doc/{name}"
    for member in files:
        if member.name == folder and member.file is None:
            found.documents_of = posixpath.basename(member.target)
            return
        if member.name == f"{folder}/copyright":
            if member.file is None:
                found.documents_of = posixpath.basename(posixpath.dirname(member.target))
            else:
                found.copyright = member.file.read(_MOST).decode("utf-8", "replace")
            return


def _debian_facts(package: DebianPackage, read: Mapping[str, _Deb], lock: Lock) -> Facts:
    deb = read[package.name]
    documents = read.get(deb.documents_of, deb)
    source, _, version = str(deb.control.get("Source", package.name)).partition(" ")
    version = version.strip("() ")
    upstream = f"{source}@{version}" if version else source if source != package.name else ""
    files = {p.name: p.sha256 for p in lock.debian}
    provided = {name: files[by] for by, each in read.items() for name in each.provides}
    requires = []
    for alternatives in (*_relations(deb.control, "Pre-Depends"), *_relations(deb.control, "Depends")):
        present = (files.get(name) or provided.get(name) for name in alternatives)
        if (sha256 := next(filter(None, present), None)) is not None:
            requires.append(sha256)
    return Facts(licenses=_debian_licenses(documents.copyright), upstream=upstream, requires=requires)


def _relations(control: Deb822, name: str) -> Iterator[list[str]]:
    """Yield the names of each group of alternatives in a field of relations."""
    if text := str(control.get(name, "")).strip():
        for group in PkgRelation.parse_relations(text):
            yield [str(each["name"]) for each in group]


def _debian_licenses(text: str) -> Sequence[str]:
    """Return the names in a file ``copyright``: of its licenses, in a machine's form, else of common ones.

    https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
    """
    machine = text.lstrip().lower().startswith("format:")
    names: Iterable[str] = (_LICENSE if machine else _COMMON).findall(text)
    return sorted({name.strip() for name in names if len(name) <= _LONGEST_NAME})
