"""The result of an import, and what it asks for on one system."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ..errors import RequestError
from ..net.session import without_credentials
from ..request import toml_reader
from ..request.direct import Direct
from ..request.envs_folder import FOLDER
from ..request.model import DEFAULT_PYTHON, PYTHONS, TorchIndex
from ..request.table import shown
from ..resolve.torch import cuda_of_version, is_cuda_package
from . import project_files
from .target_system import ReadFor, allows, hint_on_patches, holds, python_release, reading_for, target


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The requirements and settings of an imported file."""

    origin: str
    """The file, for messages."""
    name: str
    """What to call the request; any text."""
    requirements: tuple[Requirement, ...]
    """With their markers; a folder of this machine as a ``file:`` address."""
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Normalised name → the sha256 of the files that may be installed, where the file names any."""
    python: str | None = None
    """The minor version, where the file fits but one."""
    requires_python: str = ""
    """What versions the file says that it fits (``requires-python``); empty: any."""
    channels: tuple[str, ...] = ()
    """Of conda, with `conda`."""
    conda: tuple[str, ...] = ()
    """Match specs."""
    cuda: str | None = None
    """The CUDA that the file itself names; otherwise the pins may decide it."""
    index: TorchIndex | None = None
    """``pytorch`` where the file names PyTorch's own index."""
    loosened: tuple[str, ...] = ()
    """What the file asks for, and need not be kept since the user says so."""
    replaced: tuple[str, ...] = ()
    """The channels among it, in whose place conda-forge is asked."""
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """uv's variable → addresses of indexes that the file names, and that the user allows for this once."""
    places: Mapping[str, str] = field(default_factory=dict)
    """First place that requires each normalized name, as file and line, or file and key."""
    lines: Mapping[str, str] = field(default_factory=dict)
    """The same for each requirement as it is written."""
    constraints: tuple[str, ...] = ()
    """PEP 508: they hold where something requires the package."""
    overrides: tuple[str, ...] = ()
    """What is required in place of all that any package asks for; a marker that never holds: nothing."""
    exclude_newer: date | None = None
    """The last day of which the file allows a release."""
    applied: tuple[str, ...] = ()
    """Lines on what decided, for the user."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the image sets, checked as the request's own."""
    ignored: tuple[str, ...] = ()
    """Lines for the user about settings of the file without effect here."""

    @property
    def order(self) -> tuple[str, ...]:
        """The packages as the file lists them, by normalised name."""
        return tuple(dict.fromkeys(canonicalize_name(each.name) for each in self.requirements))

    @property
    def request_name(self) -> str:
        """The name of the request for it, where the user gives none."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "imported"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a request that a file decides."""

    packages: tuple[str, ...]
    torch: SpecifierSet | None
    """What versions of it are asked for; None: the file does not name it."""
    cuda: str | None
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def torch_key(self) -> str | None:
        """Torch as a request has it: an exact version, or a range; None for any."""
        if self.torch is None or not str(self.torch):
            return None
        first, *others = self.torch
        exact = first.operator in ("==", "===") and not first.version.endswith(".*")
        return first.version if exact and not others else str(self.torch)


def without_pins(imported: Imported, names: Collection[str]) -> Imported:
    """Return the import without the versions and hashes of some packages; it lists what was left out.

    Raises `RequestError` for a name that the file does not pin.
    """
    forms = {name: canonicalize_name(name.replace("*", "0any0")).replace("0any0", "*") for name in names}
    used: set[str] = set()
    requirements, gone = [], []
    hashes = dict(imported.hashes)
    for requirement in imported.requirements:
        own = canonicalize_name(requirement.name)
        asked = {name for name, form in forms.items() if fnmatch.fnmatchcase(own, form)}
        if asked and requirement.specifier:
            used |= asked
            hashes.pop(own, None)
            gone.append(str(_without_marker(requirement)))
            free = Requirement(str(requirement))
            free.specifier = SpecifierSet()
            requirements.append(free)
        else:
            requirements.append(requirement)
    constraints: list[str] = []
    for text in imported.constraints:
        asked = {name for name, form in forms.items() if fnmatch.fnmatchcase(_name_of(text), form)}
        used |= asked
        (gone if asked else constraints).append(text)
    if unknown := [name for name in names if name not in used]:
        raise RequestError(
            f"{imported.origin}: --loosen: pins no version of {', '.join(unknown)}",
            hint="name a package that the file pins, or a channel of a conda file",
        )
    return replace(
        imported,
        requirements=tuple(requirements),
        constraints=tuple(constraints),
        hashes=hashes,
        loosened=(*imported.loosened, *sorted(set(gone))),
    )


def _name_of(text: str) -> str:
    return canonicalize_name(Requirement(text).name)


def merged(first: Imported, *others: Imported | None) -> Imported:
    """Return what several files of one project ask for; the first decides its name and Python."""
    every = [first, *(each for each in others if each is not None)]
    hashes: dict[str, frozenset[str]] = {}
    settings: dict[str, tuple[str, ...]] = {}
    for each in every:
        hashes |= {name: hashes.get(name, frozenset()) | found for name, found in each.hashes.items()}
        settings |= {key: (*settings.get(key, ()), *urls) for key, urls in each.settings.items()}
    return replace(
        first,
        requirements=tuple(requirement for each in every for requirement in each.requirements),
        hashes=hashes,
        python=next((each.python for each in every if each.python), None),
        requires_python=",".join(sorted({each.requires_python for each in every if each.requires_python})),
        cuda=next((each.cuda for each in every if each.cuda), None),
        index=next((each.index for each in every if each.index), None),
        settings=settings,
        places={name: place for each in reversed(every) for name, place in each.places.items()},
        lines={text: place for each in reversed(every) for text, place in each.lines.items()},
        constraints=_all(each.constraints for each in every),
        overrides=_all(each.overrides for each in every),
        applied=_all(each.applied for each in every),
        ignored=_all(each.ignored for each in every),
    )


def _all(lines: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(lines)))


def wanted_of(imported: Imported, python: str) -> Keys:
    """Return what is asked for on the system that is read for, and a Python minor version."""
    markers = target(python).markers
    torch: SpecifierSet | None = None
    cuda = imported.cuda
    packages = []
    overrides = [Requirement(text) for text in imported.overrides]
    replaced = {canonicalize_name(each.name) for each in overrides}
    # What is asked for by name is asked for as its override says, whatever its own marker; torch has a key.
    asked = {canonicalize_name(each.name) for each in imported.requirements}
    instead = [each for each in overrides if canonicalize_name(each.name) in asked and each.marker is None]
    kept = [each for each in imported.requirements if canonicalize_name(each.name) not in replaced]
    constraints = [Requirement(text) for text in imported.constraints]
    kept += [each for each in constraints if canonicalize_name(each.name) == "torch"]
    for requirement in [*kept, *instead]:
        if not is_for(requirement.marker, markers, f"{imported.origin}: {requirement.name}"):
            continue
        name, version = canonicalize_name(requirement.name), pin(requirement)
        if name == "torch":
            if requirement.url is not None:
                raise RequestError(
                    f"{imported.origin}: torch comes from an address: {requirement.url}",
                    hint="pin its version, like torch==2.4.1; for PyTorch's own index give --index pytorch",
                )
            torch = requirement.specifier if torch is None else torch & requirement.specifier
            cuda = cuda or cuda_of_local(version)
            continue
        if version is not None and is_cuda_package(name):
            cuda = cuda or cuda_of_version(version)
        packages.append(str(_without_marker(requirement)))
    return Keys(
        tuple(packages),
        torch,
        cuda,
        tuple(str(each) for each in constraints if canonicalize_name(each.name) != "torch"),
        tuple("torch" if canonicalize_name(each.name) == "torch" else str(each) for each in overrides),
    )


def hashes_for(imported: Imported, python: str, systems: Iterable[ReadFor]) -> dict[str, frozenset[str]]:
    """Return the hashes of a file without those of pins for other systems or Pythons alone."""
    here: dict[str, bool] = {}
    for system in systems:
        with reading_for(system):
            for each in imported.requirements:
                name, place = canonicalize_name(each.name), f"{imported.origin}: {each.name}"
                here[name] = here.get(name, False) or is_for(each.marker, target(python).markers, place)
    return {name: values for name, values in imported.hashes.items() if here.get(name, True)}


def is_for(marker: Marker | None, markers: Mapping[str, str], place: str) -> bool:
    """Whether a marker holds. Raises `RequestError` for one that is neither true nor false."""
    found = holds(marker, markers)
    if found is None:
        raise RequestError(
            f"{place}: the marker {str(marker)!r} is neither true nor false", hint="correct it"
        )
    return found


def places_for(imported: Imported, python: str) -> dict[str, str]:
    """Return the place that asks for each package on this system: no line whose marker does not hold."""
    markers = target(python).markers
    holding: dict[str, str | None] = {}
    for each in imported.requirements:
        if holds(each.marker, markers):
            holding.setdefault(canonicalize_name(each.name), imported.lines.get(str(each)))
    gone = {canonicalize_name(each.name) for each in imported.requirements} - holding.keys()
    return {name: holding.get(name) or place for name, place in imported.places.items() if name not in gone}


def pin(requirement: Requirement) -> str | None:
    """Return the version that a requirement pins; None where it leaves a choice."""
    specifiers = list(requirement.specifier)
    if len(specifiers) == 1 and specifiers[0].operator in ("==", "==="):
        version = specifiers[0].version
        return None if version.endswith(".*") else version
    return None


_MOST_CHARACTERS = 1 << 16


def requirement_of(text: str, place: str) -> Requirement:
    """Parse a requirement by name, which may have an address. Raises `RequestError`."""
    project_files.count_requirement(place)
    if len(text) > _MOST_CHARACTERS:
        raise RequestError(f"{place}: a requirement of more than {_MOST_CHARACTERS:,} characters")
    try:
        return checked(Requirement(text), place)
    except (InvalidRequirement, ValueError) as error:  # of urllib, for an address
        raise RequestError(
            f"{place}: {text!r} is not a requirement: {str(error).splitlines()[0]}",
            hint="expected a name, a version or NAME @ ADDRESS, as in PEP 508",
        ) from None


def checked(requirement: Requirement, place: str) -> Requirement:
    """Validate the address of a requirement. Raises `RequestError`."""
    # A marker may have an escaped line break, which uv would read as one.
    if not str(requirement).isprintable():
        raise RequestError(f"{place}: {requirement.name}: has a line break or another control character")
    if requirement.url is not None and requirement.url.startswith("file:///"):
        path = unquote(urlsplit(requirement.url).path)
        if not os.path.lexists(path):
            raise RequestError(
                f"{place}: {requirement.name}: no such file or folder: {path}",
                hint="conda writes where it has built a package: `pip list --format=freeze` writes versions"
                if re.search(r"/(croot|feedstock_root|_work|work|build_artifacts)(/|$)", path)
                else "name a version in its place, or correct the path",
            )
    if requirement.url is not None and not requirement.url.startswith("file:"):
        try:
            Direct.parse(requirement.url)
        except ValueError as error:
            raise RequestError(
                f"{place}: {requirement.name}: {without_credentials(requirement.url)}: {error}",
                hint="logins belong in ~/.netrc, git's own settings, or those of uv and pip"
                if "user name" in str(error)
                else "name a wheel, a source archive, a git repository (git+https://…) or a folder",
            ) from None
    return requirement


def minor_of(requires: str | None) -> str | None:
    """Return the Python minor version that ``requires-python`` names, where it is but one."""
    for specifier in SpecifierSet(requires or ""):
        if specifier.operator in ("==", "===", "~=") and specifier.version.count("."):
            major, minor = specifier.version.split(".")[:2]
            if minor.isdecimal() and (specifier.operator != "~=" or specifier.version.count(".") > 1):
                return f"{major}.{minor}"
    return None


def pythons_of(imported: Imported) -> tuple[str, ...]:
    """Return the minor versions of Python that a file allows, the first to take first."""
    allowed = SpecifierSet(imported.requires_python)
    return tuple(python for python in PYTHONS if allows(allowed, python))


def fitting_python(imported: Imported, given: str | None) -> str:
    """Return the Python for a file: the one given, that of the file, or the first of `PYTHONS` that fits.

    Raises `RequestError` where the file's ``requires-python`` does not allow it, or none of them.
    """
    if imported.conda:
        return given or imported.python or DEFAULT_PYTHON
    allowed = SpecifierSet(imported.requires_python)
    wanted = given or imported.python
    fits = next(iter(pythons_of(imported)), None)
    if wanted is not None and (wanted == imported.python or allows(allowed, wanted)):
        return wanted
    if wanted is None and fits is not None:
        return fits
    every = ", ".join(map(python_release, PYTHONS))
    raise RequestError(
        f"{imported.origin}: requires-python is {imported.requires_python}, "
        f"which {f'Python {python_release(wanted)} does not fit' if wanted else f'none of {every} fits'}",
        hint=hint_on_patches(allowed) or "correct the file"
        if fits is None
        else f"give --python {fits}, which fits",
    )


def marker_of(text: object, place: str) -> Marker:
    """Parse a marker. Raises `RequestError`."""
    try:
        return Marker(str(text))
    except (InvalidMarker, RecursionError) as error:
        reason = (str(error).splitlines() or ["it is nested too deeply"])[0]
        raise RequestError(f"{place}: {shown(text)} is not a marker: {reason}") from None


def expect_table(value: object, place: str) -> dict[str, Any]:
    """Return a value that is a table. Raises `RequestError`."""
    if not isinstance(value, dict):
        raise RequestError(f"{place}: expected a table")
    return value


def table_of(data: Mapping[str, Any], key: str, place: str) -> dict[str, Any]:
    """Return the table of a key, empty if it is missing. Raises `RequestError`."""
    return expect_table(data.get(key, {}), f"{place}: {key}")


def expect_tables(value: object, place: str) -> list[dict[str, Any]]:
    """Return a value that is a list of tables. Raises `RequestError`."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise RequestError(f"{place}: expected a list of tables")
    return value


def expect_texts(value: object, place: str, form: str = "text") -> list[str]:
    """Return a value that is a list of text; ``form`` is what each stands for. Raises `RequestError`."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise RequestError(f"{place}: expected a list of {form}")
    if len(value) > project_files.MOST_REQUIREMENTS:
        raise RequestError(f"{place}: more than {project_files.MOST_REQUIREMENTS:,} {form}")
    return value


def texts_of(table: Mapping[str, Any], key: str, place: str) -> list[str]:
    """Return the list of text of a key, empty if it is missing. Raises `RequestError`."""
    return expect_texts(table.get(key, []), f"{place}.{key}")


def load_toml(text: str, where: str) -> dict[str, Any]:
    """Read TOML. Raises `RequestError`."""
    try:
        return toml_reader.load_toml(text)
    except ValueError as error:
        raise RequestError(f"{where}: not valid TOML: {error}") from None


def cuda_of_local(version: str | None) -> str | None:
    """Return ``11.8`` for ``2.4.1+cu118``, and ``cpu`` for ``2.4.1+cpu``; None for others."""
    try:
        return cuda_of_flavour((Version(version).local if version is not None else None) or "")
    except InvalidVersion:
        return None


def cuda_of_flavour(text: str) -> str | None:
    """Return ``11.8`` for PyTorch's ``cu118``, ``cpu`` for ``cpu``; None for anything else."""
    if text == "cpu":
        return "cpu"
    digits = text.removeprefix("cu")
    return (
        f"{digits[:-1]}.{digits[-1]}" if text != digits and digits.isdecimal() and len(digits) > 1 else None
    )


def _without_marker(requirement: Requirement) -> Requirement:
    """Return what a request has: no marker, and a folder by its path from the request's file."""
    plain = Requirement(str(requirement))
    plain.marker = None
    if plain.url is not None and plain.url.startswith("file:"):
        parts = urlsplit(plain.url)
        path = os.path.relpath(unquote(parts.path), FOLDER.resolve())
        plain.url = quote(path) + (f"#{parts.fragment}" if parts.fragment else "")
    return plain
