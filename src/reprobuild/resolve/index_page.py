"""A project's files on the user's indexes, HTML or JSON (PEP 503, 691), with the times that uv also reads."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import requests
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ..errors import ResolveError
from ..fetch.http_errors import reason_of
from ..host.home import open_regular
from ..net.index_settings import every_index, find_links
from ..net.local_files import file_path
from ..net.session import indexes, scrub, without_credentials
from ..request.json_reader import hold_values

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage, Link


_FOR_PEOPLE = re.compile(rb"<(form|input|script|noscript|iframe)\b|http-equiv=.?refresh\b", re.IGNORECASE)
"""What no page of an index without files has, and login pages do: many are drawn by a script alone."""


ARCHIVES = (".tar.gz", ".zip")
"""The ends of source archives' names."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a project, with its publication time if the index has one."""

    package: DistributionPackage
    uploaded: datetime | None

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel, by its name."""
        return self.package.filename.endswith(".whl")

    @property
    def sha256(self) -> str:
        """Its SHA-256, by the index, or of the file itself in a folder; empty if neither says it."""
        if (sha256 := self.package.digests.get("sha256")) or urlsplit(self.package.url).scheme != "file":
            return (sha256 or "").lower()
        try:
            with open_regular(file_path(self.package.url)) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return ""

    def version(self, project: str) -> Version | None:
        """Return the version in the name of a project's wheel or source archive; None where there is none.

        ``piq-0.5.5-1.tar.gz`` has 0.5.5-1 of piq: as for uv, an archive's name begins with the project's.
        """
        name = self.package.filename
        if self.is_wheel:
            try:
                return parse_wheel_filename(name)[1]
            except InvalidWheelFilename:
                return None
        stem = next((name.removesuffix(end) for end in ARCHIVES if name.endswith(end)), "")
        if canonicalize_name(stem[: len(project)]) != canonicalize_name(project):
            return None
        try:
            return Version(stem[len(project) + 1 :])
        except InvalidVersion:
            return None


def files(project: str, session: requests.Session) -> Sequence[File]:
    """Return the files of a project, from the indexes that uv would take them from.

    That is the first index that knows the project, or all where uv's index-strategy says so, and whatever is
    set up as find-links. An index that is a folder is passed over. Raises `ResolveError` when an index cannot
    be read or none knows the project.
    """
    every = every_index()
    found = [file for link in find_links() for file in linked_files(link, project, session)]
    for index in indexes().all:
        if index.startswith(("http://", "https://")):
            page = index_files(index, project, session)
            found += page or []
            if page and not every:
                break
    if not found:
        raise ResolveError(
            f"no index has {project}: {', '.join(scrub(url) for url in indexes().all)}",
            hint="set UV_DEFAULT_INDEX or UV_INDEX to an index that has it",
        )
    return found


def check_pages(project: str, session: requests.Session) -> None:
    """Raise `ResolveError` where an index answers for a project with anything but a page of an index."""
    for index in indexes().all:
        if index.startswith(("http://", "https://")):
            index_files(index, project, session)


def linked_files(link: str, project: str, session: requests.Session) -> list[File]:
    """Return what a page or folder of wheels has of a project."""
    if urlsplit(link).scheme == "file":
        folder = file_path(link)
        try:
            names = sorted(path.name for path in folder.iterdir())
        except OSError as error:
            raise ResolveError(
                f"{folder}, a folder of wheels by the setting find-links, cannot be read: {error.strerror}",
                hint="correct UV_FIND_LINKS or PIP_FIND_LINKS, or find-links in the files of uv or pip",
            ) from None
        from pypi_simple import Link  # noqa: PLC0415 -- as in `_read_page`

        return _files([Link(name, (folder / name).as_uri(), {}) for name in names], project)
    return _read_page(link, project, session) or []


def index_files(index: str, project: str, session: requests.Session) -> list[File] | None:
    """Return what an index has of a project; None where it does not know it. Raises `ResolveError`."""
    return _read_page(f"{index.rstrip('/')}/{project}/", project, session)


def _read_page(url: str, project: str, session: requests.Session) -> list[File] | None:
    # Here, as it takes a tenth of a second to load, and apt is at work by now.
    from pypi_simple import (  # noqa: PLC0415
        ACCEPT_ANY,
        UnsupportedContentTypeError,
        UnsupportedRepoVersionError,
    )

    try:
        with session.get(url, headers={"Accept": ACCEPT_ANY}) as answer:
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return _read(answer, project)
    except (
        requests.RequestException,
        UnsupportedContentTypeError,
        UnsupportedRepoVersionError,
        ValueError,
        RecursionError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
    ) as error:  # pypi-simple has no common class for a page that is none
        raise ResolveError(
            f"the index page {without_credentials(url)} cannot be read: {reason_of(error)}",
            hint="check the address and its login in the settings of uv or pip, and the network",
        ) from None


def _read(answer: requests.Response, project: str) -> list[File]:
    from pypi_simple import ProjectPage, RepositoryPage  # noqa: PLC0415 -- as in `_read_page`

    kind = answer.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if kind.endswith("json"):
        hold_values(answer.content)
        page = ProjectPage.from_response(answer, project)
        return [File(package, package.upload_time) for package in page.packages]
    base = without_credentials(answer.url)
    links = RepositoryPage.from_html(answer.content, base_url=base).links
    if not (found := _files(links, project)) and _FOR_PEOPLE.search(answer.content):
        # Else the index would be said to have no version of the package.
        raise ValueError("it is a web page with a form or a script, as a login has, and names no files")
    return found


def _files(links: Sequence[Link], project: str) -> list[File]:
    from pypi_simple import DistributionPackage  # noqa: PLC0415 -- as in `_read_page`

    found = []
    for link in links:
        if not canonicalize_name(link.text).startswith(project):
            continue  # soon told, and a folder of wheels is asked for each of many projects
        try:
            package = DistributionPackage.from_link(link, project)
        except ValueError:
            continue
        if package.project is None or canonicalize_name(package.project) != project:
            continue  # a page of find-links has those of many
        stamp = (link.attrs or {}).get("data-upload-time")
        found.append(File(package, _time(stamp) if isinstance(stamp, str) else None))
    return found


def _time(text: str) -> datetime | None:
    """Read the attribute that some HTML indexes have in place of PEP 700's field."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
