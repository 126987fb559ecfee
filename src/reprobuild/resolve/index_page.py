"""A project's files on the user's indexes, HTML or JSON (PEP 503, 691), with the times that uv also reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import requests
from pypi_simple import (
    ACCEPT_ANY,
    DistributionPackage,
    ProjectPage,
    RepositoryPage,
    UnsupportedContentTypeError,
    UnsupportedRepoVersionError,
)

from ..errors import ResolveError
from ..network import indexes, scrub, without_credentials


@dataclass(frozen=True, slots=True)
class File:
    """A file of a project and when it was published, where the index tells."""

    package: DistributionPackage
    uploaded: datetime | None


def files(project: str, session: requests.Session) -> Sequence[File]:
    """Return the files of a project, from the indexes that uv would take them from.

    That is the first index that knows the project, or all where UV_INDEX_STRATEGY says so. An index that is
    a folder is passed over. Raises `ResolveError` when an index cannot be read or none knows the project.
    """
    every = os.environ.get("UV_INDEX_STRATEGY", "first-index") != "first-index"
    found: list[File] = []
    for index in indexes().all:
        if index.startswith(("http://", "https://")):
            page = _page(index, project, session)
            found += page or []
            if page and not every:
                break
    if not found:
        raise ResolveError(
            f"no index knows {project}: {', '.join(scrub(url) for url in indexes().all)}",
            hint="name an index that does in UV_DEFAULT_INDEX or UV_INDEX",
        )
    return found


def _page(index: str, project: str, session: requests.Session) -> list[File] | None:
    url = f"{index.rstrip('/')}/{project}/"
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
    ) as error:
        raise ResolveError(
            f"the index page {without_credentials(url)} cannot be read: {scrub(str(error))}",
            hint="check the address and its login in the settings of uv or pip, and the network",
        ) from None


def _read(answer: requests.Response, project: str) -> list[File]:
    kind = answer.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    if kind.endswith("json"):
        page = ProjectPage.from_response(answer, project)
        return [File(package, package.upload_time) for package in page.packages]
    base = without_credentials(answer.url)
    links = RepositoryPage.from_html(answer.content, base_url=base).links
    found = []
    for link in links:
        try:
            package = DistributionPackage.from_link(link, project)
        except ValueError:
            continue
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
