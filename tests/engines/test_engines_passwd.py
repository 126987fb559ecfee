"""The users that an image names, in layers that may be a stranger's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.engines.passwd import user_of
from reprobuild.errors import HostError

PASSWD = (
    "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:34:x:/:/bin/false\n# no line\nbad:x:y:1:::\n40:x:41:42:::\n"
)
GROUP = "root:x:0:\nstaff:x:50:a,b\n"


def layer(place: Path, **files: str) -> Path:
    (place / "etc").mkdir(parents=True)
    for name, content in files.items():
        (place / "etc" / name).write_text(content)
    return place


@pytest.fixture
def layers(tmp_path: Path) -> list[Path]:
    return [layer(tmp_path / "1", passwd=PASSWD, group=GROUP), layer(tmp_path / "2", hosts="")]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0:0", (0, 0)),
        ("1000", (1000, 0)),
        ("1000:1001", (1000, 1001)),
        ("www-data", (33, 34)),
        ("33", (33, 34)),
        ("0033", (33, 34)),
        ("40", (40, 0)),  # a number is never a name
        ("41", (41, 42)),
        ("www-data:staff", (33, 50)),
        ("root:7", (0, 7)),
    ],
)
def test_numbers_and_the_image_s_names(text: str, ids: tuple[int, int], layers: list[Path]) -> None:
    assert user_of(text, layers).ids == ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nobody", "the image has no user 'nobody'"),
        ("bad", "the image has no user 'bad'"),
        ("root:wheel", "the image has no group 'wheel'"),
        ("4294967295", "4294967295 is too high"),
    ],
)
def test_who_is_not_there(text: str, words: str, layers: list[Path]) -> None:
    with pytest.raises(HostError, match=words) as refused:
        user_of(text, layers)
    assert refused.value.hint


def test_the_uppermost_file_counts_and_no_link_is_followed(tmp_path: Path, layers: list[Path]) -> None:
    above = layer(tmp_path / "3", passwd="www-data:x:5:6::/:/bin/sh\n")
    assert user_of("www-data", [*layers, above]).ids == (5, 6)
    link = layer(tmp_path / "4")
    (link / "etc" / "passwd").symlink_to("/etc/passwd")
    with pytest.raises(HostError, match="the image has no user") as refused:
        user_of("root", [*layers, link])
    assert refused.value.hint == "it names none; give a number"
    away = tmp_path / "5"
    away.mkdir()
    (away / "etc").symlink_to("/etc")
    assert user_of("www-data", [*layers, away]).ids == (33, 34)
    pipe = layer(tmp_path / "6")
    os.mkfifo(pipe / "etc" / "passwd")
    assert user_of("7", [pipe]).ids == (7, 0)


@pytest.mark.parametrize(
    ("text", "home"),
    [("0:0", "/root"), ("www-data", "/"), ("1000", "/"), ("7", "/home/seven"), ("8", "/"), ("9", "/")],
)
def test_the_home_directory(text: str, home: str, tmp_path: Path) -> None:
    more = "seven:x:7:7::/home/seven:/bin/sh\neight:x:8:8\nnine:x:9:9::~/x:\n"
    assert user_of(text, [layer(tmp_path / "1", passwd=PASSWD + more)]).home == home
