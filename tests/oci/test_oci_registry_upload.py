"""Blobs on their way to a registry that stumbles."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from reprobuild.errors import RegistryError
from support.fixtures import fixtures_of
from support.ill_registry import BUSY, CONFIG, DIGEST, answering, registry
from support.scripted import Answer, Asked, serve_answers

globals().update(fixtures_of("support.ill_registry"))


UPLOADS = "POST /v2/team/x/blobs/uploads/"


class TestPushing:
    @pytest.fixture
    def blob(self, tmp_path: Path) -> Path:
        path = tmp_path / "blob"
        path.write_bytes(CONFIG)
        return path

    @pytest.mark.parametrize(
        "headers", [{}, {"Location": "http://[bad"}, {"Location": "file:///tmp/x"}, {"Location": "ftp://h/"}]
    )
    def test_an_upload_without_a_valid_place(self, blob: Path, headers: dict[str, str]) -> None:
        refused = pytest.raises(RegistryError, match=r"does not say where an upload goes|without TLS")
        with answering({UPLOADS: Answer(202, headers=headers)}) as served, refused:
            registry(served, "pull,push").send_blob(DIGEST, blob, lambda _: None)

    def test_an_upload_that_is_redirected(self, blob: Path) -> None:
        pages: dict[str, Answer | list[Answer]] = {
            UPLOADS: Answer(202, headers={"Location": "/up?s=1"}),
            "PUT /up": Answer(307, headers={"Location": "/there?s=2"}),
            "PUT /there": Answer(201),
        }
        moved: list[int] = []
        with answering(pages) as served:
            registry(served, "pull,push").send_blob(DIGEST, blob, moved.append)
        sent = [(asked.path, asked.body) for asked in served.log if asked.method == "PUT"]
        assert sent == [(f"/up?s=1&digest={DIGEST}", CONFIG), ("/there?s=2", CONFIG)]
        assert moved == [len(CONFIG), -len(CONFIG), len(CONFIG)]

    def test_an_upload_that_is_redirected_for_ever(self, blob: Path) -> None:
        pages: dict[str, Answer | list[Answer]] = {
            UPLOADS: Answer(202, headers={"Location": "/up"}),
            "PUT /up": Answer(307, headers={"Location": "/up"}),
        }
        with answering(pages) as served, pytest.raises(RegistryError, match="in a circle"):
            registry(served, "pull,push").send_blob(DIGEST, blob, lambda _: None)

    def test_progress_of_a_broken_upload_is_taken_back(self, blob: Path) -> None:
        pages: dict[str, Answer | list[Answer]] = {
            UPLOADS: Answer(202, headers={"Location": "/up"}),
            "PUT /up": [BUSY, Answer(drop=True), Answer(201)],
        }
        moved: list[int] = []
        with answering(pages) as served:
            registry(served, "pull,push").send_blob(DIGEST, blob, moved.append)
        assert sum(moved) == len(CONFIG)
        assert moved.count(-len(CONFIG)) == 2

    def test_a_token_that_ends_before_an_upload_is_renewed(self, blob: Path) -> None:
        tokens = itertools.count(1)

        def answer(asked: Asked) -> Answer:
            if asked.path.startswith("/token"):
                return Answer.json({"token": f"t{next(tokens)}"})
            if asked.login is None or (asked.method == "PUT" and asked.login == "Bearer t1"):
                return Answer(401, headers=challenge)
            return Answer(201) if asked.method == "PUT" else Answer(202, headers={"Location": "/up"})

        with serve_answers(answer) as served:
            challenge = {"WWW-Authenticate": f'Bearer realm="http://{served.host}/token"'}
            registry(served, "pull,push").send_blob(DIGEST, blob, lambda _: None)
        assert [asked.login for asked in served.log if asked.method == "PUT"] == ["Bearer t1", "Bearer t2"]

    def test_a_registry_that_does_not_say_the_digest_of_a_tag(self) -> None:
        pages: dict[str, Answer | list[Answer]] = {
            "HEAD /v2/team/x/manifests/1": Answer(200),
            "GET /v2/team/x/manifests/1": Answer(200, CONFIG),
        }
        with answering(pages) as served:
            assert registry(served).manifest_digest() == DIGEST
