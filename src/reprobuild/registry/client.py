"""A client of a registry's API (opencontainers/distribution-spec): what a push and a base image take."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
from requests.auth import HTTPBasicAuth

from ..errors import ImageError, RegistryError
from ..net.session import session
from ..oci.documents import MANIFEST_TYPE, sha256
from ..oci.store import image_name
from .auth import CERTIFICATES, Bearer, Body, Nothing, OnlyAt, StumbledError, said, untrusted
from .credentials import Login, login_for

T = TypeVar("T")

_TRIES = 5
_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|\[::1\]")
_ACCEPT = f"{MANIFEST_TYPE}, application/vnd.docker.distribution.manifest.v2+json"
_ACCEPT_LISTS = (
    f"{_ACCEPT}, application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A name in a registry."""

    host: str
    """With the port, where it has one."""
    repository: str
    tag: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read ``REGISTRY/NAME:TAG``. Raises `ImageError`."""
        name = image_name(text)
        host, slash, rest = name.partition("/")
        if not slash or not ("." in host or ":" in host or host == "localhost"):
            raise ImageError(
                f"{text!r} names no registry", hint="give its host, as in registry.example.org/team/torch:1"
            )
        if host == "docker.io":
            raise ImageError(
                "docker.io is no registry's own host",
                hint="`reprobuild load IMAGE --into docker`, then `docker push`",
            )
        repository, _, tag = rest.rpartition(":")
        return cls(host, repository, tag)

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"{self.host}/{self.repository}:{self.tag}"


class Registry:
    """A repository of a registry. Calls try again when it stumbles. Raises `RegistryError`."""

    def __init__(self, target: Target, actions: str = "pull,push", *, wait: float = 0.5) -> None:
        self._target, self._actions, self._wait = target, actions, wait
        self._session = session(retries=0, authorities=_certificates(target.host))
        self._login = login_for(target.host, target.repository)
        self._auth: requests.auth.AuthBase = Nothing()
        self._session.auth = self._auth
        self._root = self._reach()

    def has_blob(self, digest: str) -> bool:
        """Whether the registry has a blob already."""
        return self._call("HEAD", f"blobs/{digest}", known=(200, 404)).status_code == 200

    def send_blob(self, digest: str, blob: Path, advance: Callable[[int], None]) -> None:
        """Send a blob, from the start again where the way broke; the registry checks its digest."""

        def attempt() -> None:
            begun = self._once("POST", "blobs/uploads/", known=(202,))
            place = urljoin(begun.url, begun.headers["Location"])
            mark = "&" if "?" in place else "?"
            with blob.open("rb") as file:
                self._once(
                    "PUT",
                    f"{place}{mark}digest={digest}",
                    known=(201,),
                    body=Body(file, blob.stat().st_size, advance),
                    headers={"Content-Type": "application/octet-stream"},
                )

        self._again(attempt)

    def manifest_digest(self) -> str | None:
        """Return the digest of the image that has the tag; None when there is none."""
        found = self._call(
            "HEAD", f"manifests/{self._target.tag}", known=(200, 404), headers={"Accept": _ACCEPT}
        )
        return found.headers.get("Docker-Content-Digest", "unknown") if found.status_code == 200 else None

    def read_manifest(self, wanted: str) -> bytes:
        """Return a manifest, or a list of them, by its tag or digest; the bytes fit the digest."""
        found = self._call("GET", f"manifests/{wanted}", known=(200, 404), headers={"Accept": _ACCEPT_LISTS})
        name = f"{self._target.host}/{self._target.repository}"
        if found.status_code == 404:
            raise RegistryError(f"{name} has no {wanted}: {said(found)}", hint="correct the name or the tag")
        digest = wanted if ":" in wanted else found.headers.get("Docker-Content-Digest", "")
        if digest.startswith("sha256:") and sha256(found.content) != digest:
            raise RegistryError(
                f"{name} gives other bytes for {wanted} than {digest}",
                hint="someone on the way may change them; do not use it",
            )
        return found.content

    def read_blob(self, digest: str) -> bytes:
        """Return a blob that is small, as a configuration is; the bytes fit the digest."""
        session_, url = self.reader(digest)
        content = session_.get(url).content
        if sha256(content) != digest:
            raise RegistryError(
                f"{self._target.host}/{self._target.repository} gives other bytes for the blob {digest}",
                hint="someone on the way may change them; do not use it",
            )
        return content

    def reader(self, digest: str) -> tuple[requests.Session, str]:
        """Return a session with the credentials of this moment, and the address of a blob that is there."""
        if not self.has_blob(digest):
            raise RegistryError(f"{self._target.host}/{self._target.repository} has no blob {digest}")
        self._session.auth = OnlyAt(self._target.host, self._auth)
        return self._session, f"{self._root}{self._target.repository}/blobs/{digest}"

    def send_manifest(self, manifest: bytes) -> None:
        """Send a manifest under the tag: with this, and not before, the image is there."""
        self._call(
            "PUT",
            f"manifests/{self._target.tag}",
            known=(201,),
            body=manifest,
            headers={"Content-Type": MANIFEST_TYPE},
        )

    def _reach(self) -> str:
        """Return the API's address. Only a loopback address may speak without TLS, as with Docker."""
        host = self._target.host
        loopback = _LOOPBACK.fullmatch(host.rpartition(":")[0] or host)
        root = f"{'http' if loopback and self._is_plain() else 'https'}://{host}/v2/"
        answer = self._again(lambda: self._send("GET", root))
        if answer.status_code == 404:
            raise RegistryError(f"{host} is no registry: it has no /v2/")
        if answer.status_code == 401:
            self._log_in(answer)
        elif answer.status_code >= 400:
            raise self._refusal("answer", answer)
        return root

    def _is_plain(self) -> bool:
        """Whether the registry speaks HTTP; one that speaks TLS answers 400, or nothing that can be read."""
        try:
            return self._session.get(f"http://{self._target.host}/v2/").status_code != 400
        except requests.exceptions.RequestException:
            return False

    def _log_in(self, answer: requests.Response) -> None:
        """Do as the registry asks (RFC 7235; distribution's token specification)."""
        challenge = answer.headers.get("WWW-Authenticate", "")
        kind, _, rest = challenge.partition(" ")
        login = self._login
        if kind.lower() == "basic":
            self._auth = Nothing() if login is None else HTTPBasicAuth(login.user, login.password)
        elif kind.lower() == "bearer":
            fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
            self._auth = Bearer(self._token(fields, login))

    def _token(self, fields: Mapping[str, str], login: Login | None) -> str:
        realm = fields.get("realm", "")
        asked = {
            "service": fields.get("service", ""),
            "scope": f"repository:{self._target.repository}:{self._actions}",
        }
        if login is not None and login.is_token:
            form = {**asked, "grant_type": "refresh_token", "refresh_token": login.password}
            answer = self._session.post(realm, data={**form, "client_id": "reprobuild"})
        else:
            auth = Nothing() if login is None else HTTPBasicAuth(login.user, login.password)
            answer = self._session.get(realm, params=asked, auth=auth)
        if not answer.ok:
            raise self._refusal("give a token", answer)
        found: dict[str, Any] = answer.json()
        return str(found.get("token") or found.get("access_token"))

    def _call(self, method: str, path: str, **how: Any) -> requests.Response:
        return self._again(lambda: self._once(method, path, **how))

    def _once(
        self,
        method: str,
        path: str,
        *,
        known: tuple[int, ...],
        body: bytes | Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        url = urljoin(f"{self._root}{self._target.repository}/", path)
        answer = self._send(method, url, body, headers)
        if answer.status_code == 401 and body is None:
            self._log_in(answer)  # the token is too old, or did not cover this
            answer = self._send(method, url, body, headers)
        if answer.status_code not in known:
            verb = "take" if method in ("PUT", "POST") or "push" in self._actions else "give"
            raise self._refusal(f"{verb} {self._target}", answer)
        return answer

    def _send(
        self,
        method: str,
        url: str,
        body: bytes | Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        # What is uploaded may go to another host, which signs its addresses and must see no password.
        auth = self._auth if urlsplit(url).netloc == self._target.host else Nothing()
        answer = self._session.request(method, url, data=body, headers=headers, auth=auth)
        if answer.status_code == 429 or answer.status_code >= 500:
            raise StumbledError(self._refusal("answer", answer))
        return answer

    def _again(self, attempt: Callable[[], T]) -> T:
        """Try a few times, with growing waits, while the registry or the way to it stumbles."""
        host = self._target.host
        for left in reversed(range(_TRIES)):
            try:
                return attempt()
            except StumbledError as stumbled:
                problem = stumbled.error
            except requests.exceptions.SSLError as error:
                raise untrusted(host, error, CERTIFICATES[0]) from None
            except requests.exceptions.RequestException as error:
                problem = RegistryError(f"{host}: the connection failed: {error}", hint="is it up? Try again")
            if left:
                time.sleep(self._wait * 2 ** (_TRIES - 1 - left))
        raise problem

    def _refusal(self, what: str, answer: requests.Response) -> RegistryError:
        host, status = self._target.host, answer.status_code
        text = f"{host} would not {what}: {status} {said(answer)}".rstrip()
        if status in (401, 403):
            had = "with the login that is kept for it" if self._login else "and no login is kept for it"
            return RegistryError(f"{text} ({had})", hint=f"`docker login {host}` or `podman login {host}`")
        if status == 405:
            return RegistryError(f"{text} (is it read-only?)", hint="push to a registry that takes images")
        return RegistryError(text)


def _certificates(host: str) -> list[Path]:
    return [path for folder in CERTIFICATES for path in sorted((folder / host).glob("*.crt"))]
