"""Whatever an index or a registry answers: a result, or an error with a status, and nothing else."""

from __future__ import annotations

import copy
import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import strategies as st

from reprobuild.errors import ReprobuildError
from reprobuild.net.session import session
from reprobuild.oci.documents import sha256
from reprobuild.registry.client import Registry
from reprobuild.resolve.base_image import resolve_base
from reprobuild.resolve.index_page import linked_files
from support.bases import files as base_files
from support.fuzz import LONG, for_long, quickly
from support.hosts import quiet_host
from support.resolving import request

Answer = tuple[int, Mapping[str, str], bytes]

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["linux", "sha256:" + "0" * 64, "../../etc/passwd", "a" * 500, 10**400, -1, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_DEEP = b"[" * 1_500


class Stranger:
    """A server on loopback that gives scripted answers by path, else 404."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Keep it off the tests' output."""

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                status, headers, body = stranger.answers.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET":
                    with suppress(ConnectionError):
                        self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def stranger() -> Iterator[Stranger]:
    made = Stranger()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@st.composite
def altered(draw: st.DrawFn, document: Any) -> Any:
    """A document in which a value somewhere is another, is missing, or has company."""
    found = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 2))):
        here = found
        while isinstance(here, dict | list) and here:
            key = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else list(range(len(here)))))
            below = here[key]
            if isinstance(below, dict | list) and below and draw(st.booleans()):
                here = below
                continue
            if draw(st.booleans()):
                here[key] = draw(_VALUES)
            else:
                del here[key]
            break
    return found


def written(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


_LAYER = gzip.compress(base_files(), mtime=0)
_CONFIG = {
    "architecture": "amd64",
    "os": "linux",
    "created": "2024-01-01T00:00:00Z",
    "config": {"Env": ["PATH=/usr/local/bin", "A=b=c"]},
    "history": [{"created_by": "x"}],
    "rootfs": {"type": "layers", "diff_ids": [sha256(gzip.decompress(_LAYER))]},
}
_FORM = "application/vnd.oci.image.manifest.v1+json"


@st.composite
def registries(draw: st.DrawFn) -> dict[str, Answer]:
    """What a registry has: an image, its documents altered on the way."""
    config = draw(altered(_CONFIG).map(written) | st.binary(max_size=20) | st.just(_DEEP))
    blob = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "size": len(_LAYER)}
    manifest = {
        "schemaVersion": 2,
        "mediaType": _FORM,
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": sha256(config),
            "size": len(config),
        },
        "layers": [{**blob, "digest": sha256(_LAYER)}],
    }
    top = draw(altered(manifest).map(written) | st.binary(max_size=20) | st.just(_DEEP))
    answers: dict[str, Answer] = {}
    if draw(st.booleans()):
        platform = {"os": "linux", "architecture": "amd64"}
        index = {
            "schemaVersion": 2,
            "manifests": [{"digest": sha256(top), "platform": platform, "size": len(top)}],
        }
        answers[f"/v2/team/base/manifests/{sha256(top)}"] = (200, {"Content-Type": _FORM}, top)
        top = draw(altered(index).map(written))
    headers = draw(
        st.dictionaries(
            st.sampled_from(["Content-Type", "Location", "WWW-Authenticate", "Docker-Content-Digest"]),
            st.sampled_from([
                _FORM, "text/html", "http://[", "//", "/v2/team/base/manifests/1", "ftp://a/b", "Bearer",
                "Basic realm=x",
                'Bearer realm="http://[::1",scope="a"', 'Bearer realm="file:///etc/passwd"', "",
            ]),
            max_size=2,
        )
    )  # fmt: skip
    status = draw(st.sampled_from([200, 200, 200, 200, 204, 301, 307, 401, 403, 404, 418]))
    answers["/v2/"] = (draw(st.sampled_from([200, 200, 200, 401, 404])), headers, b"")
    answers["/v2/team/base/manifests/1"] = (status, headers, top)
    answers[f"/v2/team/base/blobs/{sha256(config)}"] = (200, {}, config)
    answers[f"/v2/team/base/blobs/{sha256(_LAYER)}"] = (200, {}, _LAYER)
    return answers


def _lock_a_base(stranger: Stranger, answers: dict[str, Answer]) -> None:
    stranger.answers = answers
    with pytest.MonkeyPatch.context() as patch, suppress(ReprobuildError):
        patch.setattr(Registry.__init__, "__kwdefaults__", {"wait": 0})
        base = {"image": f"{stranger.host}/team/base:1"}
        resolve_base(request(base=base), "amd64", existing=None, host=quiet_host())


def test_the_image_that_is_altered_is_good_as_it_is(stranger: Stranger) -> None:
    config = written(_CONFIG)
    blob = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "size": len(_LAYER)}
    manifest = {"config": {"digest": sha256(config)}, "layers": [{**blob, "digest": sha256(_LAYER)}]}
    stranger.answers = {
        "/v2/": (200, {}, b""),
        "/v2/team/base/manifests/1": (200, {}, written(manifest)),
        f"/v2/team/base/blobs/{sha256(config)}": (200, {}, config),
        f"/v2/team/base/blobs/{sha256(_LAYER)}": (200, {}, _LAYER),
    }
    base = {"image": f"{stranger.host}/team/base:1"}
    assert resolve_base(request(base=base), "amd64", existing=None, host=quiet_host()) is not None


@quickly(15, answers=registries())
def test_what_a_registry_answers(stranger: Stranger, answers: dict[str, Answer]) -> None:
    _lock_a_base(stranger, answers)


@for_long(LONG // 8, answers=registries())
def test_what_a_registry_answers_at_length(stranger: Stranger, answers: dict[str, Answer]) -> None:
    _lock_a_base(stranger, answers)


_PAGE = {
    "meta": {"api-version": "1.1"},
    "name": "torch",
    "versions": ["2.4.1"],
    "files": [
        {
            "filename": "torch-2.4.1-cp311-cp311-linux_x86_64.whl",
            "url": "torch.whl",
            "hashes": {"sha256": "0" * 64},
            "size": 5,
            "upload-time": "2024-01-01T00:00:00Z",
            "yanked": False,
            "requires-python": ">=3.8",
        }
    ],
}
_HTML = st.lists(
    st.sampled_from([
        '<a href="torch-2.4.1-py3-none-any.whl#sha256=x">torch-2.4.1-py3-none-any.whl</a>', '<a href="http://[">x</a>',
        "<base href='http://['>", '<meta name="pypi:repository-version" content="9.9">', "<a>", "<!--",
        '<a href="torch-1-py3-none-any.whl" data-upload-time="x" data-requires-python="&&">t</a>',
        "<div>" * 1000, "\x00", "<![CDATA[", '<a href="javascript:x">torch-1.tar.gz</a>',
    ]),
    max_size=6,
).map(lambda parts: "".join(parts).encode())  # fmt: skip
pages = st.one_of(
    st.tuples(
        st.just("application/vnd.pypi.simple.v1+json"),
        altered(_PAGE).map(written) | st.just(_DEEP) | st.just(b"[]") | st.just(b"9" * 5000),
    ),
    st.tuples(
        st.sampled_from(["text/html", "text/html; charset=x", "", "a/b"]), _HTML | st.binary(max_size=40)
    ),
)


def _read_an_index(stranger: Stranger, page: tuple[str, bytes]) -> None:
    stranger.answers = {"/simple/torch/": (200, {"Content-Type": page[0]}, page[1])}
    with suppress(ReprobuildError), session(retries=0) as http:
        linked_files(f"http://{stranger.host}/simple/torch/", "torch", http)


@quickly(15, page=pages)
def test_what_an_index_answers(stranger: Stranger, page: tuple[str, bytes]) -> None:
    _read_an_index(stranger, page)


@for_long(LONG // 8, page=pages)
def test_what_an_index_answers_at_length(stranger: Stranger, page: tuple[str, bytes]) -> None:
    _read_an_index(stranger, page)
