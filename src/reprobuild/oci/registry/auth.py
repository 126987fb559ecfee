"""Registry authentication: logins and tokens, and the hosts that may receive them.

As in Docker and containerd, the registry, whose TLS certificate has been verified, names the server that
gives tokens, which may be on any host, and that server gets the login. Unlike them, reprobuild sends a login
without TLS only from one loopback address to another. A login or token never follows a redirect to another
scheme, host or port, and only the registry's own answer can ask for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import requests

from ...errors import RegistryError
from ...host.os_reasons import clock_remedy
from ...net.machine_address import is_here, is_loopback
from ...net.session import basic_auth, origin
from ...net.transport import read_whole
from .credentials import Login

TOKEN_LIMIT = 1 << 20
"""Bytes of a token server's answer, as in Podman (containers/image, internal/iolimits)."""

_CHALLENGE = re.compile(r"(?:^|,)\s*(basic|bearer)\s+", re.IGNORECASE)
_FIELD = re.compile(r'\b(\w+)="([^"]*)"')


class Nothing(requests.auth.AuthBase):
    """No credentials, not even those of netrc."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Leave the request as it is."""
        return request


class Bearer(requests.auth.AuthBase):
    """Authentication with a bearer token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class OnlyAt(requests.auth.AuthBase):
    """Credentials for one scheme, host and port.

    Where that answers 401, ``renew`` is asked for others, once a request. It gets the answer, sets ``auth``
    and says whether it has something new.
    """

    def __init__(
        self,
        root: str,
        auth: requests.auth.AuthBase | None = None,
        renew: Callable[[requests.Response], bool] = lambda _: False,
    ) -> None:
        self._origin = origin(urlsplit(root))
        self._renew = renew
        self.auth: requests.auth.AuthBase = auth or Nothing()

    def is_for(self, url: str) -> bool:
        """Whether an address is the registry's own."""
        return origin(urlsplit(url)) == self._origin

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the credentials where the request goes to the registry."""
        if not self.is_for(request.url or ""):
            return request
        request.register_hook("response", self._answered)  # type: ignore[no-untyped-call]
        return self.auth(request)

    def _answered(self, answer: requests.Response, **how: Any) -> requests.Response:
        request = answer.request
        sent_again = request.body is None or isinstance(request.body, bytes)
        if answer.status_code != 401 or not sent_again or not self.is_for(answer.url):
            return answer
        request.deregister_hook("response", self._answered)  # type: ignore[no-untyped-call]
        read_whole(answer, TOKEN_LIMIT)  # gives its connection back
        if not self._renew(answer):
            return answer
        again = request.copy()
        again.headers.pop("Authorization", None)
        found: requests.Response = answer.connection.send(self.auth(again), **how)
        found.request = again
        return found


def challenge(answer: requests.Response) -> tuple[str, Mapping[str, str]]:
    """Return what a 401 asks for, ``bearer`` before ``basic``, and its fields; an empty kind for neither."""
    text = answer.headers.get("WWW-Authenticate", "")
    starts = list(_CHALLENGE.finditer(text))
    ends = [*(each.start() for each in starts[1:]), len(text)]
    found = {
        start[1].lower(): dict(_FIELD.findall(text[start.end() : end]))
        for start, end in zip(starts, ends, strict=False)  # a 401 need not say what it asks for
    }
    for kind in ("bearer", "basic"):
        if kind in found:
            return kind, found[kind]
    return "", {}


def ask_token(
    http: requests.Session, fields: Mapping[str, str], scope: str, login: Login | None, root: str
) -> str:
    """Request a token from the server that a registry at ``root`` names (distribution, docs/spec/auth).

    Raises `RegistryError`, and exceptions of requests where the server cannot be reached.
    """
    realm, host = fields.get("realm", ""), urlsplit(root).netloc
    _check_realm(realm, root)
    asked = {"service": fields.get("service", ""), "scope": scope}
    if login is not None and login.is_token:
        form = {"grant_type": "refresh_token", "refresh_token": login.password, "client_id": "reprobuild"}
        # A redirect would take the token in the form to wherever it leads.
        answer = http.post(realm, data={**asked, **form}, stream=True, allow_redirects=False)
    else:
        auth = Nothing() if login is None else basic_auth(login.user, login.password)
        hold = _redirect_rule(root)
        answer = http.get(realm, params=asked, auth=auth, stream=True, hooks={"response": hold})
    content = read_whole(answer, TOKEN_LIMIT)
    server = urlsplit(realm).netloc
    if answer.status_code in (401, 403):
        had = "refuses the login that is kept for" if login else "wants a login, and none is kept for"
        raise RegistryError(
            f"{server}, the token server of {host}, {had} {host}: {answer.status_code} {said(answer)}",
            hint=f"`docker login {host}` or `podman login {host}`",
        )
    if answer.status_code != 200:
        raise bad_answer(server, f"gives no token for {host}", answer)
    try:
        found = json.loads(content)
        token = found.get("token") or found.get("access_token")
    except (ValueError, RecursionError, AttributeError):
        token = None
    if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
        raise RegistryError(f"{server}, the token server of {host}, returned no token")
    return token


def _redirect_rule(root: str) -> Callable[..., None]:
    """Return a hook of requests by which a redirect leads only where a token server may be.

    What a service of this machine answered would go on to the registry as the token.
    """

    def hold(answer: requests.Response, **_: Any) -> None:
        if answer.is_redirect:
            _check_realm(urljoin(answer.url, answer.headers["Location"]), root)

    return hold


def _check_realm(realm: str, root: str) -> None:
    try:
        parts: SplitResult | None = urlsplit(realm)
    except ValueError:
        parts = None
    plain = root.startswith("http:") and parts is not None and is_loopback(parts.hostname)
    if parts is None or not parts.hostname or parts.scheme not in ("https", "http"):
        raise RegistryError(
            f"{urlsplit(root).netloc} asks for a token, but names no valid token server: {realm!r}"
        )
    if is_here(parts.hostname) and not is_loopback(urlsplit(root).hostname):
        raise RegistryError(
            f"{urlsplit(root).netloc} asks to send its login to this machine or its own link:"
            f" {parts.scheme}://{parts.netloc}",
            hint="the registry's setting for its token server (realm) must be an address that others reach",
        )
    if parts.scheme == "http" and not plain:
        raise RegistryError(
            f"{urlsplit(root).netloc} asks to send its login to {parts.scheme}://{parts.netloc}, without TLS",
            hint="the registry's setting for its token server (realm) must be an https address",
        )


class StumbledError(Exception):
    """An answer after which the same request may well succeed, not before ``after`` seconds."""

    def __init__(self, error: RegistryError, after: float = 0) -> None:
        super().__init__(error.message)
        self.error, self.after = error, after


def bad_answer(host: str, what: str, answer: requests.Response) -> StumbledError | RegistryError:
    """Return the error of an answer with a bad status: one to try again, or one for good."""
    error = RegistryError(f"{host} {what}: {answer.status_code} {said(answer)}".rstrip())
    if answer.status_code == 429 or answer.status_code >= 500:
        wait = answer.headers.get("Retry-After", "")
        return StumbledError(error, float(wait) if re.fullmatch(r"[0-9]{1,6}", wait) else 0)
    return error


def untrusted(host: str, error: Exception, certificates: object) -> RegistryError:
    """Return the error of a registry with which no TLS can be spoken; its own CA goes into a folder."""
    if "certificate" not in str(error).lower():
        return RegistryError(
            f"{host} does not speak TLS: {error}", hint="only a loopback address may do without"
        )
    return RegistryError(
        f"{host} shows a certificate that is not trusted: {error}",
        hint=clock_remedy(str(error), f"put its CA into {certificates}/{host}/ca.crt, as for Docker"),
    )


def said(answer: requests.Response) -> str:
    """Return what a registry says of an error, in the specification's form or not, cut to a few lines."""
    try:
        errors = json.loads(answer.content)["errors"]
        text = "; ".join(f"{e['code']}: {e.get('message', '')}" for e in errors)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = answer.content[:800].decode("utf-8", "replace").strip()
    return (text or answer.reason or "")[:400]
