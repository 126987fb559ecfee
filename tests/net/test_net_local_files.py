"""Folders of wheels."""

from __future__ import annotations

import pytest

from reprobuild.errors import HostError
from reprobuild.net.index_settings import check_find_links


@pytest.mark.parametrize("name", ["UV_FIND_LINKS", "PIP_FIND_LINKS"])
def test_a_folder_of_wheels_that_is_not_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("UV_FIND_LINKS", "PIP_FIND_LINKS", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "/nowhere/wheels")
    with pytest.raises(HostError, match=f"^{name} names /nowhere/wheels, which does not exist"):
        check_find_links()
