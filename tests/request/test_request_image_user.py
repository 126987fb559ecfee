"""The key ``user`` of a request."""

from __future__ import annotations

import pytest

from reprobuild.errors import RequestError
from reprobuild.request.image_user import ImageUser
from reprobuild.request.model import Request


def asked(user: object) -> Request:
    return Request.from_dict({"cuda": "cpu", "user": user}, "here")


def test_a_user_is_a_name_and_a_number() -> None:
    found = asked("app:1000")
    assert found.user == ImageUser("app", 1000)
    assert Request.from_dict(found.to_dict(), "there") == found
    assert (found.user.home, found.user.ids) == ("/home/app", "1000:1000")


def test_a_request_without_one_is_written_as_before() -> None:
    assert "user" not in Request.from_dict({"cuda": "cpu"}, "here").to_dict()


@pytest.mark.parametrize(
    "text",
    [
        *("", "app", "1000", "app:", ":1000", "app:x", "app:01000", "app:1000:1000", "App:1000", "a b:1000"),
        *(
            "app:1000\n",
            "../x:1000",
            "a:b:1000",
            "-app:1000",
            f"{'a' * 33}:1000",
            "app:\u0661\u0660\u0660\u0660",
        ),
    ],
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match=r'^here: user: .* is not a valid user: expected .*"app:1000"'):
        asked(text)


@pytest.mark.parametrize("number", ["1", "999", "60000", "65534"])
def test_a_number_of_the_system_is_refused(number: str) -> None:
    with pytest.raises(RequestError, match=f"^here: user: {number} is not an ordinary user's id"):
        asked(f"app:{number}")


def test_a_number_alone_is_refused() -> None:
    with pytest.raises(RequestError, match=r"^here: user: expected text"):
        asked(1000)
