"""A package index on loopback: tiny real wheels, HTML or JSON pages, metadata files, ranges, a login."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal
from urllib.parse import quote, unquote, urlsplit

from support.server import listening

UPLOADED = "2024-09-04T19:14:13.409988Z"


def wheel(
    name: str, version: str, *, requires: Sequence[str] = (), extras: Sequence[str] = (), python: str = ""
) -> bytes:
    """Return a wheel with nothing in it but what an installer reads; equal arguments, equal bytes."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    metadata += [f"Requires-Python: {python}\n"] if python else []
    metadata += [f"Provides-Extra: {extra}\n" for extra in extras]
    metadata += [f"Requires-Dist: {requirement}\n" for requirement in requires]
    files = {
        f"{module}/__init__.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": "".join(metadata),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return out.getvalue()


@dataclass(kw_only=True)
class File:
    """A file of the index and what is odd about it."""

    project: str
    name: str
    body: bytes
    metadata: Literal["served", "announced", "unannounced"] = "served"
    """``announced``: the page speaks of a metadata file that is not there; ``unannounced``: neither."""
    uploaded: str | None = UPLOADED
    hashed: bool = True
    yanked: bool = False
    ranges: bool = True
    head: int = 200

    metadata_claims: str = ""
    """What the pages say that the sha256 of its metadata file is; empty: nothing."""
    claims: str = ""
    """What the pages say that its sha256 is, when that is a lie."""

    @property
    def sha256(self) -> str:
        return self.claims or hashlib.sha256(self.body).hexdigest()

    @property
    def text(self) -> bytes:
        """The METADATA inside."""
        with zipfile.ZipFile(io.BytesIO(self.body)) as archive:
            return archive.read(next(n for n in archive.namelist() if n.endswith("/METADATA")))


@dataclass
class Index:
    """A running index; get one with `serve_index`."""

    root: str
    files: list[File] = field(default_factory=list)
    json: bool = True
    login: str | None = None
    """``user:password`` that every request must bring."""
    elsewhere: str = ""
    """Where the pages say that the files are, when it is another host."""
    status: int = 200
    log: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and Authorization header of every request."""

    @property
    def url(self) -> str:
        return self.root + "/simple/"

    @property
    def url_with_login(self) -> str:
        user, _, password = (self.login or "").partition(":")
        return self.url.replace("://", f"://{quote(user)}:{quote(password)}@")

    def add(
        self,
        project: str,
        version: str,
        *,
        tag: str = "py3-none-any",
        requires: Sequence[str] = (),
        extras: Sequence[str] = (),
        python: str = "",
        **odd: Any,
    ) -> File:
        """Put a wheel on the index."""
        body = wheel(project, version, requires=requires, extras=extras, python=python)
        name = f"{project.replace('-', '_')}-{version}-{tag}.whl"
        file = File(project=project, name=name, body=body, **odd)
        self.files.append(file)
        return file

    def add_sdist(self, project: str, version: str) -> None:
        """Put a source distribution on the index; nobody looks into it."""
        self.files.append(
            File(project=project, name=f"{project}-{version}.tar.gz", body=b"sdist", metadata="unannounced")
        )

    def asked(self, ending: str) -> list[str]:
        """Return the methods of the requests for paths with an ending."""
        return [method for method, path, _ in self.log if path.endswith(ending)]

    def page(self, project: str) -> tuple[str, bytes] | None:
        """Return the content type and body of a project's page."""
        files = [file for file in self.files if file.project == project]
        if not files:
            return None
        if self.json:
            data = {
                "meta": {"api-version": "1.1"},
                "name": project,
                "versions": [],
                "files": [self._json(file) for file in files],
            }
            return "application/vnd.pypi.simple.v1+json", json.dumps(data).encode()
        lines = "\n".join(self._anchor(file) for file in files)
        return "text/html", f"<!DOCTYPE html><html><body>\n{lines}\n</body></html>".encode()

    def _address(self, file: File) -> str:
        return f"{self.elsewhere}/files/{quote(file.name)}"

    def _json(self, file: File) -> dict[str, Any]:
        data: dict[str, Any] = {
            "filename": file.name,
            "url": self._address(file),
            "hashes": {"sha256": file.sha256} if file.hashed else {},
            "yanked": file.yanked,
            "core-metadata": {"sha256": file.metadata_claims}
            if file.metadata_claims
            else file.metadata != "unannounced",
            "size": len(file.body),
        }
        return data | ({"upload-time": file.uploaded} if file.uploaded else {})

    def _anchor(self, file: File) -> str:
        attributes = {"href": self._address(file) + (f"#sha256={file.sha256}" if file.hashed else "")}
        if file.metadata != "unannounced":
            attributes["data-dist-info-metadata"] = "true"
        if file.uploaded:
            attributes["data-upload-time"] = file.uploaded
        if file.yanked:
            attributes["data-yanked"] = "broken"
        text = " ".join(f'{key}="{html.escape(value)}"' for key, value in attributes.items())
        return f"<a {text}>{file.name}</a><br/>"


@contextmanager
def serve_index() -> Iterator[Index]:
    """Run an index on 127.0.0.1."""

    class Handler(_Handler):
        index: Index

    with listening(Handler) as httpd:
        Handler.index = Index(f"http://127.0.0.1:{httpd.server_address[1]}")
        yield Handler.index


class _Handler(BaseHTTPRequestHandler):
    index: Index
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Keep it off the tests' output."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        sent = self.headers.get("Authorization", "")
        self.index.log.append((self.command, path, sent))
        login = self.index.login
        if login is not None and sent != "Basic " + base64.b64encode(login.encode()).decode():
            self._send(401, extra={"WWW-Authenticate": "Basic realm=index"})
        elif self.index.status != 200:
            self._send(self.index.status)
        elif path.startswith("/simple/"):
            page = self.index.page(path.split("/")[2])
            self._send(404) if page is None else self._send(200, page[1], {"Content-Type": page[0]})
        else:
            self._file(path.rpartition("/")[2])

    def _file(self, name: str) -> None:
        for file in self.index.files:
            if name == file.name + ".metadata" and file.metadata == "served":
                self._send(200, file.text)
                return
            if name == file.name:
                self._body(file)
                return
        self._send(404)

    def _body(self, file: File) -> None:
        if self.command == "HEAD" and file.head != 200:
            self._send(file.head)
            return
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None or not file.ranges:
            self._send(200, file.body, {"Accept-Ranges": "bytes"} if file.ranges else {})
            return
        start, end = int(asked[1]), min(int(asked[2]) + 1, len(file.body))
        place = {"Content-Range": f"bytes {start}-{end - 1}/{len(file.body)}"}
        self._send(206, file.body[start:end], place)

    def _send(self, status: int, body: bytes = b"", extra: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in (extra or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
