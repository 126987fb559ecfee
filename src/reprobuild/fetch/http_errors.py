"""Classify a failed response: retry (`Again`) or fail (`FetchError`), without secrets in the message."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

import requests
import urllib3

from ..errors import FetchError
from ..host.os_reasons import clock_remedy
from ..net.session import scrub
from ..net.transport import StalledError

TAMPERED = (
    "nothing of it was kept; if a new try ends the same, either the index names a hash that its own file "
    "does not have, or the publisher has replaced the file (`reprobuild lock --upgrade`), or someone on the "
    "way changes it, and then it must not be used"
)
_CREDENTIALS = (
    "give user name and password in the index's address as uv or pip take it (UV_INDEX_URL, PIP_INDEX_URL, "
    "UV_INDEX_<NAME>_PASSWORD, pip.conf), or in ~/.netrc"
)
_CA = "name the file of your CA in REQUESTS_CA_BUNDLE or SSL_CERT_FILE"
_PROXY = "give user name and password in the proxy's address (HTTPS_PROXY, HTTP_PROXY)"
_NETWORK = "check the network and the proxy settings, then run it again: the download is resumed"
_PASSING = (408, 425, 429)


class Again(Exception):  # noqa: N818 -- tells to try again; ``error`` is the error if that is of no use either
    """A failure that may pass, not before ``after`` seconds."""

    def __init__(self, message: str, *, after: float = 0) -> None:
        super().__init__(message)
        self.error = FetchError(message, hint=_NETWORK)
        self.after = after


def refusal_of(response: requests.Response, gone: str) -> Again | FetchError:
    """Return the error for a response without a file. ``gone``: the hint if the file does not exist."""
    code = response.status_code
    # The reason phrase is the server's own text: of any length, and it may repeat the request.
    phrase = f" {HTTPStatus(code).phrase}" if code in set(HTTPStatus) else ""
    message = f"{host_of(response.url)} answers {code}{phrase}"
    if code >= 500 or code in _PASSING:
        wait = response.headers.get("Retry-After", "")
        return Again(message, after=float(wait) if re.fullmatch("[0-9]{1,6}", wait) else 0)
    hint = {401: _CREDENTIALS, 403: _CREDENTIALS, 407: _PROXY, 404: gone, 410: gone}.get(code, gone)
    return FetchError(message, hint=hint)


def failure_of(
    url: str, error: requests.RequestException | urllib3.exceptions.HTTPError
) -> Again | FetchError:
    """Return the error for a connection that failed."""
    chain = list(_chain(error))
    host, reason = host_of(url), _reason(chain)
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        return FetchError(f"{host}: its certificate is not trusted: {reason}", hint=clock_remedy(reason, _CA))
    if any(isinstance(link, requests.exceptions.ProxyError) for link in chain) and " 407 " in f"{reason} ":
        return FetchError(f"{host}: the proxy refuses: {reason}", hint=_PROXY)
    if isinstance(error, urllib3.exceptions.HTTPError | requests.ConnectionError | requests.Timeout):
        return Again(f"{host}: {reason}")
    return FetchError(
        f"{host}: {reason}", hint="look at the address in the lock; `reprobuild lock` writes it"
    )


def reason_of(error: Exception) -> str:
    """Return why a request failed, in the system's words where it did not come to an answer."""
    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return _reason(list(_chain(error)))
    return scrub(str(error))


def summary_of(filename: str, errors: Sequence[FetchError]) -> FetchError:
    """Combine the errors of a file's addresses into one."""
    said = dict.fromkeys(error.message for error in errors)
    return FetchError(f"{filename}: {'; '.join(said)}", hint=errors[0].hint)


def is_page(response: requests.Response) -> bool:
    """Whether a body is a page of HTML: never the beginning of a package, but often an error or a login."""
    return bool(response.headers.get("Content-Type", "").partition(";")[0] == "text/html")


def host_of(url: str) -> str:
    """Return host and port for a message; the path of a file: address."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or parts.path


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and those inside it; each library keeps the cause in a place of its own."""
    found: list[BaseException] = []
    inner: object = error
    while isinstance(inner, BaseException) and inner not in found:
        found.append(inner)
        in_args = [part for part in inner.args if isinstance(part, BaseException)]
        places = (getattr(inner, "reason", None), *in_args, inner.__cause__, inner.__context__)
        inner = next((place for place in places if isinstance(place, BaseException)), None)
    yield from found


def _reason(chain: Sequence[BaseException]) -> str:
    last = chain[-1]
    stalled = next((link for link in chain if isinstance(link, StalledError)), None)
    if stalled is not None:
        return str(stalled)
    if any(isinstance(link, TimeoutError | requests.Timeout) for link in chain):
        return "no answer within the time limit"
    if isinstance(last, ssl.SSLCertVerificationError):
        return last.verify_message or scrub(str(last))
    return scrub((last.strerror if isinstance(last, OSError) else None) or str(last) or type(last).__name__)
