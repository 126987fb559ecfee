"""What is older than it could be, or a pre-release, only since it alone has a wheel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reprobuild.errors import ResolveError
from reprobuild.net.session import session
from reprobuild.resolve.constraint_loop import fitting
from reprobuild.resolve.uv_command import resolve_python
from reprobuild.resolve.uv_refusal import UnreadError
from support.index import Index
from support.resolving import request, resolution

pytest_plugins = ["support.family"]


def fitted(*packages: str) -> tuple[dict[str, str], list[str]]:
    """Return the versions, and the notes."""
    asked = request(packages=list(packages))
    with session(retries=0) as http:
        about = resolution(http, asked)
        found = fitting(list(asked.packages), about)
    return {package.name: package.version for package in found or ()}, about.notes


def test_a_newest_release_without_a_wheel_is_told(index: Index) -> None:
    index.add("tool", "1.0")
    index.add_sdist("tool", "1.0")
    index.add_sdist("tool", "2.0")
    assert fitted("tool") == ({"tool": "1.0"}, ["tool 1.0 is taken: 2.0, the newest, has no wheel"])
    assert fitted("tool<2") == ({"tool": "1.0"}, [])


def test_an_archive_with_a_dash_in_its_version_is_not_the_newest(index: Index) -> None:
    index.add("zzqbar", "0.8.0")
    index.add_sdist("zzqbar", "0.5.5-1")
    index.add_sdist("zzqbar-extra", "9.0")
    assert fitted("zzqbar") == ({"zzqbar": "0.8.0"}, [])


def test_one_that_requires_what_has_no_wheel_is_told(index: Index) -> None:
    index.add("hydra", "1.0")
    index.add("hydra", "1.3", requires=["antlr==4.9.*"])
    index.add_sdist("antlr", "4.9.3")
    versions, notes = fitted("hydra")
    assert versions == {"hydra": "1.0"}
    assert notes == ["hydra 1.0 is taken: 1.3, the newest, requires antlr, which has no wheel"]


def test_one_that_does_not_fit_the_others_is_not(index: Index) -> None:
    index.add("hydra", "1.0")
    index.add("hydra", "1.3", requires=["other==2"])
    index.add("other", "1")
    index.add("other", "2")
    assert fitted("hydra", "other==1") == ({"hydra": "1.0", "other": "1"}, [])


def test_a_pre_release_is_not_taken_for_its_wheel(index: Index) -> None:
    index.add("speed", "0.3.1.dev5")
    index.add_sdist("speed", "0.18.2")
    with pytest.raises(
        ResolveError, match=r"pre-release 0\.3\.1\.dev5; .*, 0\.18\.2, has no wheel"
    ) as caught:
        fitted("speed")
    assert "give --package speed==0.3.1.dev5 (packages" in caught.value.hint
    assert fitted("speed==0.3.1.dev5")[0] == {"speed": "0.3.1.dev5"}


def test_a_later_pre_release_is_not_taken_in_place_of_a_release(index: Index) -> None:
    index.add("hydra", "1.3", requires=["antlr"])
    index.add("hydra", "1.4rc1")
    index.add_sdist("antlr", "4.9.3")
    with pytest.raises(ResolveError, match=r"only the pre-release 1\.4rc1; .* 1\.3, requires antlr, which"):
        fitted("hydra")


def test_a_package_that_has_only_pre_releases_is_taken(index: Index) -> None:
    index.add("conventions", "0.45b0")
    assert fitted("conventions") == ({"conventions": "0.45b0"}, [])


def test_all_that_have_no_wheel_are_named_at_once(index: Index) -> None:
    for name in ("one", "two"):
        index.add_sdist(name, "1.0")
    index.add("three", "1.0")
    index.add_sdist("three", "0.9")
    with pytest.raises(ResolveError, match="no wheel for this Python and machine of one, two;"):
        fitted("one", "two==1.0", "three")


def test_what_uv_does_not_say_of_a_newer_release_is_a_note(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.add("hydra", "1.0")
    index.add("hydra", "1.3", requires=["other==2"])
    index.add("other", "1")

    def unread(requirements: Sequence[str], *args: Any, **keys: Any) -> Any:
        if "hydra==1.3" in requirements:
            raise UnreadError("uv says:\nwhat nobody knows")
        return resolve_python(requirements, *args, **keys)

    monkeypatch.setattr("reprobuild.resolve.constraint_loop.resolve_python", unread)
    versions, notes = fitted("hydra", "other==1")
    assert versions == {"hydra": "1.0", "other": "1"}
    assert notes == ["whether hydra==1.3 fits is not known: uv says:"]
