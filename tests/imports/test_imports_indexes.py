"""Indexes that a team's file names."""

from __future__ import annotations

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from reprobuild.errors import RequestError
from reprobuild.imports.recognize import read_import
from support.fixtures import fixtures_of
from support.team_files import PYTORCH, Write, table

globals().update(fixtures_of("support.team_files"))


@pytest.mark.parametrize(
    ("lines", "cuda", "torch"),
    [
        ("--extra-index-url https://download.{host}/whl/cu118\ntorch==2.4.1", "11.8", "2.4.1"),
        ("-f https://download.{host}/whl/torch_stable.html\ntorch==2.0.1+cu117", "11.7", "2.0.1+cu117"),
        ("--index-url=https://download.{host}/whl/cpu\r\ntorch==2.4.1", "cpu", "2.4.1"),
    ],
)
def test_pytorch_s_index_becomes_the_request_s(write: Write, lines: str, cuda: str, torch: str) -> None:
    found = table(write("requirements.txt", lines.format(host=PYTORCH)))
    assert (found["index"], found["cuda"], found["torch"]) == ("pytorch", cuda, torch)


@pytest.mark.parametrize("channel", ["nightly", "test"])
def test_pytorch_s_builds_that_were_not_released_are_not_those_of_its_index(
    write: Write, channel: str
) -> None:
    file = write("requirements.txt", f"--pre\n-i https://download.{PYTORCH}/whl/{channel}/cu128\ntorch\n")
    with pytest.raises(RequestError, match=f"this one is not set up: .*/{channel}/cu128"):
        read_import(file)


def test_an_index_that_is_set_up_may_stand_in_the_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://user:secret@index.example/simple")
    file = write("requirements.txt", "-i https://index.example/simple/\ntorch==2.4.1+cu121\n")
    assert "index" not in table(file)


@pytest.mark.parametrize(("scheme", "end"), [("https", "org"), ("http", "org"), ("https", "python.org")])
def test_the_well_known_index_has_several_addresses(write: Write, scheme: str, end: str) -> None:
    address = PYPI_SIMPLE_ENDPOINT.replace("https", scheme).replace(".org", f".{end}")
    assert "index" not in table(write("requirements.txt", f"-i {address}\ntorch==2.4.1+cu121\n"))


def test_another_index_is_the_user_s_to_set_up(write: Write) -> None:
    file = write("requirements.txt", "--extra-index-url https://u:secret@index.example/simple\ntorch\n")
    with pytest.raises(RequestError) as caught:
        read_import(file)
    assert "export UV_INDEX=https://index.example/simple)" in caught.value.hint
    assert "secret" not in caught.value.message + caught.value.hint


def test_an_index_that_the_user_allows(write: Write) -> None:
    file = write(
        "requirements.txt",
        "-i https://index.example/simple\n-f https://files.index.example/whl.html\ntorch==2.4.1+cpu\n",
    )
    with pytest.raises(RequestError, match="--index-url: the index is a setting") as caught:
        read_import(file)
    assert "--index-from-file index.example" in caught.value.hint
    with pytest.raises(RequestError, match="--find-links"):
        read_import(file, hosts=["index.example"])
    assert read_import(file, hosts=["index.example", "files.index.example"]).settings == {
        "UV_DEFAULT_INDEX": ("https://index.example/simple",),
        "UV_FIND_LINKS": ("https://files.index.example/whl.html",),
    }


def test_a_password_in_a_file_s_index_is_not_taken(write: Write) -> None:
    file = write("requirements.txt", "-i https://u:secret@index.example/simple\n")
    with pytest.raises(RequestError) as caught:
        read_import(file, hosts=["index.example"])
    assert "secret" not in caught.value.message + caught.value.hint


def test_the_index_that_counts_without_a_setting_may_be_named(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror.example/simple")
    file = write("requirements.txt", f"-i {PYPI_SIMPLE_ENDPOINT}\ntorch==2.4.1+cpu\n")
    assert read_import(file).settings == {}
