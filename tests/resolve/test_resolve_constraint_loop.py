"""What is said when uv refuses, and cannot say what would fit in place of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reprobuild.errors import ResolveError
from reprobuild.net.session import session
from reprobuild.resolve.constraint_loop import fitting
from reprobuild.resolve.uv_command import resolve_python
from reprobuild.resolve.uv_refusal import RefusedError, UnreadError
from support.index import Index
from support.resolving import request, resolution

pytest_plugins = ["support.family"]


def test_advice_that_uv_cannot_give_does_not_hide_the_refusal(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1", "2"):
        index.add("other", version)
    index.add("hydra", "1.0", requires=["other==2"])

    def unread(requirements: Sequence[str], *args: Any, **keys: Any) -> Any:
        if "hydra==1.0" not in requirements or "other==1" not in requirements:
            raise UnreadError("uv says:\nwhat nobody knows")
        return resolve_python(requirements, *args, **keys)

    monkeypatch.setattr("reprobuild.resolve.constraint_loop.resolve_python", unread)
    asked = request(packages=["hydra==1.0", "other==1"])
    with session(retries=0) as http, pytest.raises(ResolveError, match="hydra==1") as caught:
        fitting(asked.packages, resolution(http, asked))
    assert "what would fit in its place is not known: uv says:" in caught.value.hint


def test_what_is_not_a_refusal_is_not_argued_with(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(*_: Any, **__: Any) -> Any:
        raise UnreadError("uv says: what nobody knows", hint="as it is")

    monkeypatch.setattr("reprobuild.resolve.constraint_loop.resolve_python", unread)
    with session(retries=0) as http, pytest.raises(UnreadError) as caught:
        fitting(["hydra"], resolution(http, request(packages=["hydra"])))
    assert (caught.value.hint, isinstance(caught.value, RefusedError)) == ("as it is", False)
