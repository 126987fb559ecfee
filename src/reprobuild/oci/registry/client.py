"""Client of the registry API (opencontainers/distribution-spec), for pushing and for base images."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import ReadTimeoutError

from ...errors import ImageError, RegistryError
from ...host.home import write_all
from ...net.machine_address import is_loopback
from ...net.session import basic_auth, session
from ...net.transport import TooLargeError, read_whole
from ..blobs import open_blob
from ..documents import (
    DOCUMENT_LIMIT,
    IMAGE_TYPES,
    INDEX_TYPE,
    LIST_TYPES,
    MANIFEST_TYPE,
    descriptors,
    sha256,
)
from ..store import image_name
from ..stream import CHUNK
from .auth import (
    Bearer,
    OnlyAt,
    StumbledError,
    ask_token,
    bad_answer,
    challenge,
    said,
    untrusted,
)
from .credentials import login_for
from .upload import Body, next_place

T = TypeVar("T")

CERTIFICATES = (Path("/etc/docker/certs.d"), Path("/etc/containers/certs.d"))
"""Where Docker and Podman look for a registry's own CA: ``HOST:PORT/*.crt``."""

_TRIES = 5
_READING_STALLS = 2
"""How often an answer to a reading call may fail to come in time. What is sent may take long to store."""

_STALLED = (TimeoutError, ReadTimeoutError)
_LONGEST_PAUSE = 30.0
_REDIRECTS = 5
_PAGES = 20
_ACCEPT = ", ".join(IMAGE_TYPES)
_ACCEPT_LISTS = ", ".join((*IMAGE_TYPES, *LIST_TYPES))
_FINAL = (
    requests.exceptions.TooManyRedirects,
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    TooLargeError,
)
"""Failures that the same request would meet again."""


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
                "docker.io is a short name, not the host of a registry",
                hint="`reprobuild load IMAGE --into docker`, then `docker push`",
            )
        repository, _, tag = rest.rpartition(":")
        return cls(host, repository, tag)

    @classmethod
    def parse_repository(cls, text: str) -> Target:
        """Read ``REGISTRY/NAME``, without a tag. Raises `ImageError`."""
        if ":" in text.rpartition("/")[2]:
            raise ImageError(f"{text!r} has a tag: expected a repository", hint="leave the tag out")
        return cls.parse(text)

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"{self.host}/{self.repository}:{self.tag}"


class Registry:
    """A repository of a registry. Every call is tried again while the registry stumbles.

    Raises `RegistryError`, and no exception of a library.
    """

    def __init__(self, target: Target, actions: str = "pull,push", *, wait: float = 0.5) -> None:
        self._target, self._actions, self._wait = target, actions, wait
        self._session = session(retries=0, authorities=_certificates(target.host))
        self._login = login_for(target.host, target.repository)
        self._root = ""
        self._auth = OnlyAt(f"https://{target.host}")  # has nothing to give until `_reach`
        self._session.auth = self._auth
        self._reach()

    def has_blob(self, digest: str) -> bool:
        """Whether the registry has a blob already."""
        return self._call("HEAD", f"blobs/{digest}", known=(200, 404)).status_code == 200

    def send_blob(self, digest: str, blob: Path, advance: Callable[[int], None]) -> None:
        """Send a blob, from the start again where the connection broke; the registry checks its digest.

        ``advance`` gets the bytes that were sent, and takes back those of an attempt that failed.
        """

        def attempt() -> None:
            begun = self._once("POST", "blobs/uploads/", known=(202,))
            place = next_place(begun, self._root)
            place = f"{place}{'&' if '?' in place else '?'}digest={digest}"
            for _ in range(_REDIRECTS):
                with open_blob(blob) as file, Body(file, blob.stat().st_size, advance) as body:
                    sent = self._once(
                        "PUT",
                        place,
                        known=(201, 307, 308),
                        body=body,
                        headers={"Content-Type": "application/octet-stream"},
                    )
                    if sent.status_code == 201:
                        body.arrived = True
                        return
                    place = next_place(sent, self._root)
            raise RegistryError(f"{self._target.host} redirects the upload of a blob in a circle")

        self._again(attempt, _TRIES)

    def manifest_digest(self) -> str | None:
        """Return the digest of the image with the tag; None if the tag does not exist."""
        tag = self._target.tag
        found = self._call("HEAD", f"manifests/{tag}", known=(200, 404), headers={"Accept": _ACCEPT})
        if found.status_code == 404:
            return None
        # The header may be missing (distribution-spec, "Pulling manifests").
        return found.headers.get("Docker-Content-Digest") or sha256(self.read_manifest(tag))

    def read_manifest(self, wanted: str) -> bytes:
        """Return a manifest, or a list of them, by its tag or digest; the bytes fit the digest."""
        return self._read(f"manifests/{wanted}", wanted, headers={"Accept": _ACCEPT_LISTS})

    def read_blob(self, digest: str) -> bytes:
        """Return a blob that is small, as a configuration is; the bytes fit the digest."""
        return self._read(f"blobs/{digest}", digest)

    def save_blob(self, digest: str, size: int, path: Path) -> None:
        """Write a blob of a size to a file; its bytes fit the digest."""
        session, url = self.address(digest)

        def attempt() -> None:
            seen, count = hashlib.sha256(), 0
            with session.get(url, stream=True, headers={"Accept-Encoding": "identity"}) as answer:
                if answer.status_code != 200:
                    raise self._refusal(f"give {digest}", answer)
                with path.open("wb") as out:
                    for chunk in answer.iter_content(CHUNK):
                        seen.update(chunk)
                        if (count := count + len(chunk)) > size:
                            break
                        write_all(out, chunk)
            if (f"sha256:{seen.hexdigest()}", count) != (digest, size):
                raise StumbledError(RegistryError(f"{self._name} returned other bytes for {digest}"))

        self._again(attempt)

    def reader(self, digest: str) -> tuple[requests.Session, str]:
        """Return the address of a blob that is there, and a session that keeps its login up to date."""
        if not self.has_blob(digest):
            raise RegistryError(f"{self._name} has no blob {digest}")
        return self.address(digest)

    def address(self, digest: str) -> tuple[requests.Session, str]:
        """Return the same without asking whether the blob is there."""
        return self._session, f"{self._root}{self._target.repository}/blobs/{digest}"

    def send_manifest(self, manifest: bytes, reference: str = "", media_type: str = MANIFEST_TYPE) -> str:
        """Send a manifest, by default under the tag: with this, and not before, the image is there.

        Return the digest of the subject that the registry has listed it under; empty: it lists none.
        """
        sent = self._call(
            "PUT",
            f"manifests/{reference or self._target.tag}",
            known=(201,),
            body=manifest,
            headers={"Content-Type": media_type},
        )
        return str(sent.headers.get("OCI-Subject", ""))

    def find_manifest(self, reference: str) -> bytes | None:
        """Return a manifest as `read_manifest` does; None if it does not exist."""
        found = self._call(
            "HEAD", f"manifests/{reference}", known=(200, 404), headers={"Accept": _ACCEPT_LISTS}
        )
        return None if found.status_code == 404 else self.read_manifest(reference)

    def referrers(self, digest: str) -> list[Mapping[str, Any]] | None:
        """Return the descriptors of what is attached to an image; None where the registry lists nothing.

        The distribution-spec, "Listing Referrers"; a list may come in several pages.
        """
        entries: list[Mapping[str, Any]] = []
        place = f"referrers/{digest}"
        for _ in range(_PAGES):
            found = self._call("GET", place, known=(200, 400, 404, 405), headers={"Accept": INDEX_TYPE})
            if found.status_code != 200:
                if place != f"referrers/{digest}":  # the rest is not missing, it is not given
                    raise RegistryError(f"{self._name}: its list of referrers breaks off: {said(found)}")
                return None
            try:
                entries += descriptors(found.content)
            except ValueError as error:
                raise RegistryError(f"{self._name}: its list of referrers is not valid: {error}") from None
            if "next" not in found.links:
                return entries
            further = str(found.links["next"].get("url"))
            try:
                place = urljoin(found.url, further)
            except ValueError:
                place = ""
            if not place.startswith(self._root):
                raise RegistryError(
                    f"{self._name}: its list of referrers continues at another address: {further}"
                )
        raise RegistryError(f"{self._name}: its list of referrers has more than {_PAGES} pages")

    @property
    def _name(self) -> str:
        return f"{self._target.host}/{self._target.repository}"

    def _read(self, path: str, wanted: str, **how: Any) -> bytes:
        """Read a whole document, and verify its digest."""

        def attempt() -> bytes:
            found = self._once("GET", path, known=(200, 404), **how)
            if found.status_code == 404:
                raise RegistryError(
                    f"{self._name} has no {wanted}: {said(found)}", hint="correct the name or the tag"
                )
            if ":" not in wanted and self._root.startswith("https:") and not found.url.startswith("https:"):
                raise RegistryError(f"{self._name} redirects the tag {wanted} to {found.url}, without TLS")
            digest = wanted if ":" in wanted else found.headers.get("Docker-Content-Digest", "")
            if digest.startswith("sha256:") and sha256(found.content) != digest:
                error = RegistryError(
                    f"{self._name} returned bytes for {wanted} that do not match the digest {digest}",
                    hint="a proxy or the registry may have modified them; do not use it",
                )
                # Without a length, an answer that broke off looks like one that ended.
                raise error if "Content-Length" in found.headers else StumbledError(error)
            return found.content

        return self._again(attempt)

    def _reach(self) -> None:
        """Find the API's address, and log in. Only a loopback address may speak without TLS."""
        host = self._target.host
        plain = is_loopback(urlsplit(f"//{host}").hostname) and self._is_plain()
        self._root = f"{'http' if plain else 'https'}://{host}/v2/"
        self._auth = OnlyAt(self._root, renew=self._log_in)
        self._session.auth = self._auth
        answer = self._again(lambda: self._send("GET", self._root))
        if answer.status_code == 404:
            raise RegistryError(f"{host} is not a registry: it has no /v2/")
        # 401 without a login: what may be read by all is found out by the first real call.
        if answer.status_code >= 400 and not (answer.status_code == 401 and challenge(answer)[0]):
            raise self._refusal("answer", answer)

    def _is_plain(self) -> bool:
        """Whether the registry speaks HTTP; one that speaks TLS answers 400, or nothing that can be read."""
        try:
            with self._session.get(f"http://{self._target.host}/v2/", stream=True) as answer:
                return answer.status_code != 400
        except requests.exceptions.RequestException:
            return False

    def _log_in(self, answer: requests.Response) -> bool:
        """Log in as the registry's 401 requires (RFC 7235); return whether the credentials changed."""
        kind, fields = challenge(answer)
        if kind == "bearer":
            scope = f"repository:{self._target.repository}:{self._actions}"
            token = ask_token(self._session, fields, scope, self._login, self._root)
            self._auth.auth = Bearer(token)
            return True
        if kind == "basic" and self._login is not None:
            had = "Authorization" in answer.request.headers
            self._auth.auth = basic_auth(self._login.user, self._login.password)
            return not had
        return False

    def _call(self, method: str, path: str, **how: Any) -> requests.Response:
        stalls = _READING_STALLS if method in ("GET", "HEAD") else _TRIES
        return self._again(lambda: self._once(method, path, **how), stalls)

    def _once(
        self,
        method: str,
        path: str,
        *,
        known: tuple[int, ...],
        body: bytes | Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        answer = self._send(method, urljoin(f"{self._root}{self._target.repository}/", path), body, headers)
        streamed = isinstance(body, Body) and self._auth.is_for(answer.url)
        if answer.status_code == 401 and streamed and self._log_in(answer):
            raise StumbledError(self._refusal(f"take {self._target}", answer))
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
        answer = self._session.request(
            method, url, data=body, headers=headers, stream=True, allow_redirects=body is None
        )
        read_whole(answer, DOCUMENT_LIMIT)
        error = bad_answer(self._target.host, "stumbles", answer)
        if isinstance(error, StumbledError):
            raise error
        return answer

    def _again(self, attempt: Callable[[], T], stalls: int = _READING_STALLS) -> T:
        """Try a few times, with growing waits, while the registry or the way to it stumbles.

        ``stalls``: how often it may be silent until the time limit.
        """
        host = self._target.host
        for left in reversed(range(_TRIES)):
            after = 0.0
            try:
                return attempt()
            except StumbledError as stumbled:
                problem, after = stumbled.error, stumbled.after
            except requests.exceptions.SSLError as error:
                raise untrusted(host, error, CERTIFICATES[0]) from None
            except _FINAL as error:
                raise RegistryError(
                    f"{host}: {error}", hint="look at the registry's settings; its answer cannot be followed"
                ) from None
            except requests.exceptions.RequestException as error:
                said_of = f"{host}: the connection failed: {_reason(error)}"
                problem = RegistryError(said_of, hint="is it up? Try again")
                stalls -= any(isinstance(inner, _STALLED) for inner in _inner(error))
                if not stalls:
                    break
            if left:
                time.sleep(min(max(self._wait * 2 ** (_TRIES - 1 - left), after), _LONGEST_PAUSE))
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


def _reason(error: BaseException) -> str:
    """Return the system's own words for a broken connection, where one of the inner errors has them."""
    for inner in _inner(error):
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror[:1].lower() + inner.strerror[1:]
        if isinstance(inner, _STALLED):
            return "it gave no answer in time"
        if isinstance(inner, RemoteDisconnected):
            return "it was closed before an answer"
    return str(error)


def _inner(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those within it, the outermost first."""
    inner: BaseException | None = error
    for _ in range(10):
        if inner is None:
            return
        yield inner
        places = (getattr(inner, "reason", None), *inner.args, inner.__cause__, inner.__context__)
        inner = next((place for place in places if isinstance(place, BaseException)), None)


def _certificates(host: str) -> list[Path]:
    return [path for folder in CERTIFICATES for path in sorted((folder / host).glob("*.crt"))]
