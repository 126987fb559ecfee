"""``remove``: an image or a name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from support.small_images import NAME

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin


pytest_plugins = ["support.commands", "support.small_images"]


def test_remove_and_clean(small_digest: str, call: Call) -> None:
    assert call("remove", NAME).out == f"{NAME}: removed ({small_digest[:19]})\n"
    assert call("images", "--json").out == "[]\n"
    facts = json.loads(call("clean", "--json").out)
    assert facts["freed"] > 0
    assert facts["home"].endswith("/reprobuild")
    assert call("clean", "--all").out.startswith("0 B freed in ")
