"""Addresses of requirements."""

from __future__ import annotations

import pytest

from reprobuild.request.direct import Direct

SHA = "a" * 64


@pytest.mark.parametrize(
    ("text", "kind", "url", "ref", "subdirectory"),
    [
        (
            "https://h.example/w/a-1-py3-none-any.whl",
            "wheel",
            "https://h.example/w/a-1-py3-none-any.whl",
            "",
            "",
        ),
        (f"https://h.example/a-1.tar.gz#sha256={SHA}", "archive", "https://h.example/a-1.tar.gz", "", ""),
        ("git+https://h.example/a.git", "git", "https://h.example/a.git", "", ""),
        (
            "git+https://h.example/a@feature/x#subdirectory=py",
            "git",
            "https://h.example/a",
            "feature/x",
            "py",
        ),
        ("git+ssh://git@h.example:2222/a.git@v1", "git", "ssh://git@h.example:2222/a.git", "v1", ""),
        ("../libs/x", "folder", "../libs/x", "", ""),
        ("..", "folder", "..", "", ""),
    ],
)
def test_an_address_and_back(text: str, kind: str, url: str, ref: str, subdirectory: str) -> None:
    direct = Direct.parse(text)
    assert (direct.kind, direct.url, direct.ref, direct.subdirectory) == (kind, url, ref, subdirectory)
    assert Direct.parse(str(direct)) == direct
    assert str(direct) == text


def test_what_names_nothing_is_dropped() -> None:
    assert (
        str(Direct.parse("git+https://h.example/a#egg=a&subdirectory=./py/"))
        == "git+https://h.example/a#subdirectory=py"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "https://", "ftp://h.example/a-1.tar.gz", "file:///etc/a-1.tar.gz", "https://h.example/a"),
        *(
            "https://h.example/a-1.tar.gz?x=1",
            "https://u@h.example/a-1.tar.gz",
            "git+https://u:p@h.example/a",
        ),
        *(
            "https://h.example/%2e%2e%2fa-1.tar.gz",
            "https://h.example/a%0a-1.zip",
            "https://h.example/a%1b-1.zip",
        ),
        *(
            "git+ssh://git:p@h.example/a",
            "git+file:///a",
            "git+git://h.example/a",
            "git+https://h.example/a@--x",
        ),
        *(
            "git+https://h.example/a@a..b",
            "git+https://h.example/a#subdirectory=../x",
            "https://h.example/a-1.zip#x=1",
        ),
        *(
            f"https://h.example/a-1.zip#sha256={SHA[1:]}",
            "/etc",
            "../a b",
            "..\\a",
            "../a$HOME",
            "https://[x/a-1.zip",
        ),
        *("../a#x=1", "https://h.example/a-1.zip\n", "../a#subdirectory=/etc"),
        *("../a%00b", "./sub%0aline", "./a%1b[2K", "./a%e2%80%aeb", "git+https://h.example/a%00b"),
        "git+https://h.example/a%0ab",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Direct.parse(text)
