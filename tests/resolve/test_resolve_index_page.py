"""Whatever an index answers: a result, or an error with a status."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import strategies as st

from reprobuild.errors import ReprobuildError
from reprobuild.net.session import session
from reprobuild.resolve.index_page import linked_files
from support.fuzz import LONG, for_long, quickly
from support.strange_answers import _DEEP, Stranger, altered, written

pytest_plugins = ["support.strange_answers"]


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
