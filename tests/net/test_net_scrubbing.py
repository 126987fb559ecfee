"""Secrets do not appear in messages and logs."""

from __future__ import annotations

import logging

import pytest

from reprobuild.host import process
from reprobuild.net.session import ScrubFilter, scrub
from support.fixtures import fixtures_of

globals().update(fixtures_of("support.net_servers"))


class TestScrub:
    @pytest.mark.parametrize(
        ("text", "clean"),
        [
            ("see https://me:word@h.example/a and http://tok@i.example", "see https://h.example/a and http://i.example"),
            ("'https://me:p@ss@h.example'", "'https://h.example'"),
            ("a@b.example, https://h.example/@scope", "a@b.example, https://h.example/@scope"),
            ("https://h.example/a?token=x&b=y#z: gone", "https://h.example/a?***#z: gone"),
            ("'https://h.example/a?sig=a:b,c;d', gone", "'https://h.example/a?***', gone"),
            ("what? https://h.example/a, or b?", "what? https://h.example/a, or b?"),
        ],
    )  # fmt: skip
    def test_addresses(self, text: str, clean: str) -> None:
        assert scrub(text) == clean

    def test_known_secrets_wherever_they_stand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UV_INDEX", "https://longtoken@a.example/ https://me:p%40ssword@b.example/")
        monkeypatch.setenv("https_proxy", "http://me:proxyword@c.example")
        monkeypatch.setenv("UV_INDEX_CORP_PASSWORD", "another")
        text = "longtoken p@ssword p%40ssword proxyword another me"
        assert scrub(text) == "*** *** *** *** *** me"

    def test_short_words_do_not_eat_the_text(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UV_INDEX", "https://a:a@h.example/")
        assert scrub("a cat") == "a cat"

    def test_arguments_of_processes_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        process.run(["true", "https://me:word@h.example/"])
        assert "run: true https://h.example/" in caplog.text

    def test_filter(self) -> None:
        record = logging.LogRecord("x", 10, "f", 1, "at %s", ("http://a:b@h.example",), None)
        assert ScrubFilter().filter(record)
        assert record.getMessage() == "at http://h.example"
