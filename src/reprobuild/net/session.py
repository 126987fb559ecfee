"""HTTP as pip and uv are set up for it: proxies, CA, credentials. `scrubbing` keeps those unseen."""

from __future__ import annotations

import functools
import ssl
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import requests
import truststore
import urllib3
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_netrc_auth
from urllib3.util import Retry

from .. import __version__
from ..errors import HostError
from .index_settings import Indexes, ca_bundle, client_certificate, find_links, indexes, proxy, uv_environment
from .machine_address import is_here
from .scrubbing import ScrubFilter, scrub, without_credentials
from .transport import Adapter

__all__ = ["Indexes", "ScrubFilter", "indexes", "scrub", "session", "uv_environment", "without_credentials"]

CONNECT_TIMEOUT = 15.0
READ_TIMEOUT = 60.0
"""Seconds without a byte; long, since some indexes make a page on demand."""

LONGEST_PAUSE = 30.0
"""Seconds before a retry. urllib3 waits for hours, older ones for years, where a server asks for them."""

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Credential:
    origin: tuple[str, str, int | None]
    path: str
    user: str
    password: str


def session(*, retries: int = 3, authorities: Iterable[Path] = ()) -> requests.Session:
    """Return a session that reaches what the user's pip and uv reach; it may be shared by threads.

    GET and HEAD are tried again ``retries`` times, with growing waits, when the connection breaks before an
    answer or the answer is 429 or 5xx, after at most `LONGEST_PAUSE` whatever the server asks for; the last
    such answer is then returned. Every call has a time limit.
    The credentials of a configured index go to that scheme, host and port only, also over redirects; other
    hosts get what netrc has for them; a redirect from https to http gets none. An answer that is read whole
    has at most `transport.LARGEST_PAGE` bytes, and a peer that stalls is a broken connection. ``authorities``
    are files of CA certificates to trust as well. Raises `HostError` when a configured certificate file is no
    good.
    """
    made = _Session()
    made.headers["User-Agent"] = f"reprobuild/{__version__}"
    made.auth = _Auth()
    retry = _Retry(
        total=retries,
        backoff_factor=0.3,
        status_forcelist=(429, 500, 502, 503, 504),
        allowed_methods=("GET", "HEAD"),
        raise_on_status=False,
    )
    context = _own_context() if authorities else _shared_context()
    for file in authorities:
        try:
            context.load_verify_locations(cafile=file)
        except OSError as error:
            raise HostError(f"{file}: no CA certificate can be read: {error}", hint="correct it") from None
    for scheme in ("http://", "https://"):
        made.mount(scheme, Adapter(retry, context))
    if proxy():
        made.proxies = {"http": proxy(), "https": proxy()}
    return made


def _shared_context() -> ssl.SSLContext:
    """One for all sessions of this process: reading a bundle takes longer than the rest of a handshake."""
    bundle = ca_bundle()
    if bundle is None or client_certificate() is not None:
        return _own_context()
    state = bundle.stat()
    if stat.S_ISDIR(state.st_mode):  # a file in it may change, and the folder does not show it
        return _own_context()
    return _kept_context(bundle, state.st_ino, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=1)
def _kept_context(_bundle: Path, *_state: int) -> ssl.SSLContext:
    return _own_context()


def _own_context() -> ssl.SSLContext:
    context = _verifying_context()
    certificate = client_certificate()
    if certificate is not None:
        try:
            # Without a password: what is protected by one fails here, and does not ask on the terminal.
            context.load_cert_chain(certificate, password=b"")
        except OSError as error:
            raise HostError(
                f"{certificate}: no certificate with its key can be read: {error}", hint="correct the file"
            ) from None
    return context


def _verifying_context() -> ssl.SSLContext:
    bundle = ca_bundle()
    if bundle is None:
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if bundle.is_dir():
            return ssl.create_default_context(capath=bundle)
        return ssl.create_default_context(cafile=bundle)
    except OSError as error:
        raise HostError(
            f"{bundle}: no CA certificates can be read: {error}", hint="correct the file"
        ) from None


class _Retry(Retry):
    def get_retry_after(self, response: Any) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, LONGEST_PAUSE)


class _Session(requests.Session):
    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Add a timeout to every call; requests has none."""
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = (CONNECT_TIMEOUT, READ_TIMEOUT)
        try:
            return super().request(*args, **kwargs)
        except requests.RequestException:
            raise
        except (ValueError, urllib3.exceptions.HTTPError) as error:
            # An address in a redirect that cannot be read raises what the parser of addresses raises.
            raise requests.exceptions.InvalidURL(str(error)) from error

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return where an answer leads. Raises `InvalidURL` for one from elsewhere to this machine."""
        target = super().get_redirect_target(resp)
        host = urlsplit(urljoin(resp.url, target)).hostname if target else None
        if is_here(host) and not is_here(urlsplit(resp.url).hostname):
            raise requests.exceptions.InvalidURL(
                f"it redirects to {host}, which is this machine or its own link"
            )
        return str(target) if target else None

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Send a redirect the credentials of its target, and none if it leaves TLS."""
        headers, old, new = prepared_request.headers, response.url, prepared_request.url or ""
        left_tls = old.startswith("https:") and not new.startswith("https:")
        if left_tls or self.should_strip_auth(old, new):  # type: ignore[no-untyped-call]
            headers.pop("Authorization", None)
        if "Authorization" not in headers and callable(self.auth) and not left_tls:
            self.auth(prepared_request)

    def merge_environment_settings(self, *args: Any, **kwargs: Any) -> Any:
        """Leave the bundle to the adapter's context; requests would read it anew for every connection."""
        return {**super().merge_environment_settings(*args, **kwargs), "verify": True}


class _Auth(AuthBase):
    """Basic authentication by origin. Never raises: a host without credentials gets none."""

    def __init__(self) -> None:
        self._known = list(_credentials((*indexes().all, *find_links())))

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(request.url or "")
        pair = _userinfo(parts) or self._of(parts) or get_netrc_auth(request.url or "")
        if pair is not None:
            basic_auth(*pair)(request)
        return request

    def _of(self, parts: SplitResult) -> tuple[str, str] | None:
        # Two indexes of one host may have a password each: that of the closest path is meant.
        same = [known for known in self._known if known.origin == origin(parts)]
        if not same:
            return None
        best = max(same, key=lambda known: _shared(known.path, parts.path))
        return best.user, best.password


def _shared(one: str, other: str) -> int:
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _credentials(urls: tuple[str, ...]) -> Iterator[_Credential]:
    for url in urls:
        parts = urlsplit(url)
        pair = _userinfo(parts)
        if pair is not None:
            yield _Credential(origin(parts), parts.path, *pair)


def _userinfo(parts: SplitResult) -> tuple[str, str] | None:
    if not parts.username and not parts.password:
        return None
    return unquote(parts.username or ""), unquote(parts.password or "")


def basic_auth(user: str, password: str) -> HTTPBasicAuth:
    """Return basic authentication in UTF-8, as uv and Docker send it; requests would take Latin-1."""
    return HTTPBasicAuth(user.encode(), password.encode())


def origin(parts: SplitResult) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address: credentials for one are not for another."""
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _DEFAULT_PORTS.get(parts.scheme)
