"""What all tests share: golden files, a home of their own, and what to do without a program."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from reprobuild.host import process

# No deadline: a loaded machine is no bug.
settings.register_profile("reprobuild", deadline=None)
settings.load_profile("reprobuild")

GOLDEN = Path(__file__).parent / "golden"

# Fixtures of a session are made once a process: these modules share what takes minutes to make.
_SHARES = {
    "engines": (
        "test_engines_contract",
        "test_engines_contexts",
        "test_engines_self_contained",
        "test_engines_gpu_daemons",
    ),
    "images": ("test_real_bad_days", "test_engines_bad_days", "test_real_sabotaged_image"),
}


# What is started in the background, or by nohup, ignores these, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For several processes (``-n 2``): keep a module's tests together, and modules that share images."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _share_of(nodeid)

    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process is left with it at the end."""
    shares = list(_SHARES)

    def turn(item: pytest.Item) -> int:
        share = _share_of(item.nodeid)
        return shares.index(share) if share in shares else len(shares) + (not item.get_closest_marker("real"))

    items.sort(key=turn)


def _share_of(nodeid: str) -> str:
    module = nodeid.partition("::")[0]
    return next((share for share, modules in _SHARES.items() if Path(module).stem in modules), module)


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
