"""Where Debian's archives are served, as the user's apt is set up: for the resolver and for the fetch.

The sources are read from apt's files and not asked of ``apt-get indextargets``, which says nothing where the
lists were never downloaded or were removed, as in most containers. Forms: sources.list(5).
"""

from __future__ import annotations

import logging
import os
import platform
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote, urlsplit

from debian.deb822 import Deb822

from ..errors import HostError
from ..host.process import ProcessFailed, require, run, which
from ..lock.packages import DebianPackage
from ..net.session import scrub

log = logging.getLogger(__name__)

MAIN, SECURITY = "debian", "debian-security"
OVERRIDES = {MAIN: "REPROBUILD_DEBIAN_MIRROR", SECURITY: "REPROBUILD_DEBIAN_SECURITY_MIRROR"}

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
"""Of the package debian-archive-keyring, which Debian's apt depends on."""

_UNRELEASED = ("sid", "unstable", "experimental")
_ROLES = ("stable", "oldstable", "oldoldstable", "testing")
_SUITE = re.compile(r"([a-z]+)(|-updates|-security|/updates)/?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirror:
    """One mirror of one archive. Only ``main`` is used of it, whatever else the user has enabled."""

    url: str
    """The URL that contains ``pool/`` and ``dists/``, without a trailing slash; may contain credentials."""
    suites: tuple[str, ...]
    """``("bookworm", "bookworm-updates")`` or ``("bookworm-security",)``."""
    signed_by: str = ""
    """As in sources.list(5): keyring files, fingerprints or a key; empty: all that apt trusts."""
    named: bool = False
    """Whether a variable of reprobuild names it, rather than apt's files."""


@dataclass(frozen=True, slots=True)
class _Entry:
    url: str
    suite: str
    signed_by: str


def mirrors(suite: str) -> dict[str, tuple[Mirror, ...]]:
    """Return the mirrors of ``debian`` and, where there are, of ``debian-security`` for a release.

    ``REPROBUILD_DEBIAN_MIRROR`` and ``REPROBUILD_DEBIAN_SECURITY_MIRROR`` outrank apt's files. On a Debian of
    another release its mirrors are taken with the names of the suites exchanged. Raises `HostError` when
    there is no mirror of ``debian``.
    """
    found: dict[str, dict[str, Mirror]] = {MAIN: {}, SECURITY: {}}
    known = {suite} | _host_releases()
    for entry in _entries(os.environ.get("APT_CONFIG", "")):
        form = _SUITE.fullmatch(entry.suite)
        if form is None or form[1] not in known:
            log.debug("apt's source %s %s is not for Debian %s", scrub(entry.url), entry.suite, suite)
            continue
        _add(found, suite, form[2], entry)
    for key, variable in OVERRIDES.items():
        address = os.environ.get(variable)
        if address:
            names = suites(key, suite)
            signed_by = next((s.signed_by for s in found[key].values()), "") or keyring()
            found[key] = {"": Mirror(url=_root(address), suites=names, signed_by=signed_by, named=True)}
    if not found[MAIN]:
        raise HostError(
            f"apt is set up with no mirror of Debian {suite}",
            hint=f"name one in the variable {OVERRIDES[MAIN]} (and {OVERRIDES[SECURITY]})",
        )
    return {key: tuple(mirrors.values()) for key, mirrors in found.items() if mirrors}


def package_urls(suite: str, package: DebianPackage) -> tuple[str, ...]:
    """Return where a locked package may be fetched, best first; an address may hold credentials.

    Raises `HostError` when no mirror of its archive is set up.
    """
    found = mirrors(suite).get(package.archive, ())
    if not found:
        raise HostError(
            f"{package.filename} is of Debian's archive {package.archive}, of which apt has no mirror",
            hint=f"name one in the variable {OVERRIDES.get(package.archive, OVERRIDES[MAIN])}",
        )
    # apt quotes + and ~ too, and some mirrors in object stores need that of +.
    return tuple(f"{mirror.url}/{quote(package.path, safe='/~')}" for mirror in found)


def _add(found: dict[str, dict[str, Mirror]], suite: str, ending: str, entry: _Entry) -> None:
    url = _root(entry.url)
    if ending in ("-security", "/updates"):
        key, wanted = SECURITY, suites(SECURITY, suite)
    else:
        key, wanted = MAIN, (suite + ending,)
    if ending and suite in _UNRELEASED:
        return
    earlier = found[key].get(url)
    have = earlier.suites if earlier else ()
    # The release itself before its updates, in whatever order apt's files name them.
    names = tuple(sorted({*have, *wanted}, key=lambda name: (name != suite, name)))
    signed_by = (earlier.signed_by if earlier else "") or entry.signed_by
    found[key][url] = Mirror(url=url, suites=names, signed_by=signed_by)


def suites(key: str, suite: str) -> tuple[str, ...]:
    """Return what of a release an archive has."""
    if suite in _UNRELEASED:
        return (suite,)
    return (suite, f"{suite}-updates") if key == MAIN else (f"{suite}-security",)


def _root(url: str) -> str:
    return url.rstrip("/")


def keyring() -> str:
    """Return the file of Debian's keys, empty where this machine has none."""
    return str(KEYRING) if KEYRING.exists() else ""


def _host_releases() -> set[str]:
    """Return the names by which a source of this machine can mean its own Debian release."""
    try:
        fields = platform.freedesktop_os_release()
    except OSError:
        return set()
    if fields.get("ID") != "debian":
        return set()
    return {*_ROLES, *_UNRELEASED, fields.get("VERSION_CODENAME", "")} - {""}


@cache
def _entries(apt_config: str) -> tuple[_Entry, ...]:  # noqa: ARG001 -- only the key of the cache
    """Read apt's files once, since `package_urls` is asked for every package of a lock."""
    return () if which("apt-config") is None else tuple(_read(*_files()))


def _read(files: Path, parts: Path) -> Iterator[_Entry]:
    # apt reads sources.list first, then the folder by name.
    for path in [files, *sorted(parts.glob("*"))] if parts.is_dir() else [files]:
        try:
            text = path.read_text("utf-8")
        except (FileNotFoundError, IsADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise HostError(f"{path}: cannot be read: {error}", hint="correct apt's sources") from None
        if path.suffix == ".sources":
            entries = _deb822(text)
        elif path == files or path.suffix == ".list":
            entries = _one_line(text)
        else:
            continue
        for entry in entries:
            yield from _resolved(entry)


def _files() -> tuple[Path, Path]:
    """Query apt for the paths of its sources, which APT_CONFIG and apt.conf can move."""
    shell = apt_config("shell", "A", "Dir::Etc::sourcelist/f", "B", "Dir::Etc::sourceparts/d")
    values = dict(line.split("=", 1) for line in shlex.split(shell))
    return Path(values.get("A", "/dev/null")), Path(values.get("B", "/dev/null"))


def apt_config(*arguments: str) -> str:
    """Return the user's settings from apt-config. Raises `HostError` if they are invalid."""
    program = require("apt-config", "to learn how apt is set up")
    try:
        return run([program, *arguments]).stdout.decode("utf-8", "replace")
    except ProcessFailed as error:
        raise HostError(
            f"apt's settings cannot be read: {scrub(error.tail)}",
            hint="correct apt.conf",
        ) from None


def _deb822(text: str) -> Iterator[_Entry]:
    for stanza in Deb822.iter_paragraphs(text):
        enabled = stanza.get("Enabled", "yes").strip().lower() not in ("no", "false", "without", "off", "0")
        if not enabled or "deb" not in stanza.get("Types", "").split():
            continue
        if "main" not in stanza.get("Components", "").split():
            continue
        for url in stanza.get("URIs", "").split():
            for suite in stanza.get("Suites", "").split():
                yield _Entry(url, suite, stanza.get("Signed-By", "").strip())


def _one_line(text: str) -> Iterator[_Entry]:
    for line in text.splitlines():
        form = re.fullmatch(r"deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)", line.partition("#")[0].strip())
        if form is None or "main" not in form[4].split():
            continue
        options = dict(word.split("=", 1) for word in (form[1] or "").split() if "=" in word)
        yield _Entry(form[2], form[3], options.get("signed-by", "").replace(",", " "))


def _resolved(entry: _Entry) -> Iterator[_Entry]:
    """Take the mirrors out of a mirror list on disk (Debian's cloud images have one); pass over CDs."""
    parts = urlsplit(entry.url)
    if parts.scheme in ("http", "https", "file"):
        yield entry
    elif parts.scheme == "mirror+file":
        try:
            lines = Path(parts.path).read_text("utf-8").splitlines()
        except OSError:
            return
        for line in lines:
            words = line.partition("#")[0].split()
            if words and urlsplit(words[0]).scheme in ("http", "https", "file"):
                yield _Entry(words[0], entry.suite, entry.signed_by)
    else:
        log.debug("apt's source %s is not a usable mirror", scrub(entry.url))
