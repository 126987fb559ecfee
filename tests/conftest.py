"""What all tests share: golden files, a home of their own, and what to do without a program."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from reprobuild import process

# No deadline: a loaded machine is no bug.
settings.register_profile("reprobuild", deadline=None)
settings.load_profile("reprobuild")

GOLDEN = Path(__file__).parent / "golden"


# What is started in the background, or by nohup, ignores these, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For several processes (``-n 2``): keep the tests of a module together, and modules that share images.

    Those take longest, so they come first.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    order = {"engines": 0, "images": 1}
    items.sort(key=lambda item: order.get(_group(item), 2 if item.get_closest_marker("real") else 3))


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    assert mark is not None
    return str(mark.args[0])


@pytest.fixture(autouse=True)
def _own_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep unit tests off the user's store and the user's uv, pip and apt settings.

    Tests marked ``real`` need those settings to reach an index; they set what they need themselves.
    """
    if request.node.get_closest_marker("real"):
        return
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_", "REPROBUILD_", "XDG_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("REPROBUILD_HOME", str(home / "reprobuild"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_NO_CONFIG", "1")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, bytes], None]:
    """Compare bytes with a golden file; ``--update-golden`` or UPDATE_GOLDEN=1 writes it anew."""
    update = request.config.getoption("--update-golden") or os.environ.get("UPDATE_GOLDEN") == "1"

    def check(path: Path, actual: bytes) -> None:
        if update:
            path.write_bytes(actual)
        expected = path.read_bytes().decode()
        assert expected == actual.decode(), f"{path.name} differs; pytest --update-golden writes it anew"

    return check


def needs(program: str) -> None:
    """Skip the test, with the reason, when a program is missing; fail it in CI."""
    if process.which(program) is None:
        reason = f"{program} is not installed"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
