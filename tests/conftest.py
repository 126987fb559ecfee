"""What all tests share: golden files, a home of their own, and what to do without a program."""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from reprobuild.host import process
from reprobuild.host.ext4_spread import spread_below

# Nothing is timed: a loaded machine is no bug. By hand: --hypothesis-profile=full.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("full", _UNTIMED)
settings.register_profile("quick", _UNTIMED, max_examples=25)
settings.load_profile("full" if os.environ.get("CI") else "quick")

GOLDEN = Path(__file__).parent / "golden"

STAGES = ("core", "engines", "slow")
"""The marks of tests for real, of which each has one; a test without is of the stage ``quick``."""

# The engine among a test's parameters, and that whose daemon is a fixture of the session (support/shared.py).
_ENGINES = re.compile(r"docker-20\.10|docker-26\.1|podman")
_OF_THE_SESSION = "docker-26.1"
_LARGEST = "tests/real/test_real_cli.py"
_APART = ("tests/twice/test_twice_programs.py", "tests/in_image/test_portable.py")
"""Modules whose tests share nothing, and of which one process alone would work when the others have ended."""
_OF_THE_CORE = ("tests/real/test_real_core.py", "tests/real/test_real_sabotaged_image.py")
"""Of one image, which takes a minute to build."""

_MARKS: pytest.StashKey[Mapping[str, set[str]]] = pytest.StashKey()
_LEFT_OUT: pytest.StashKey[dict[str, int]] = pytest.StashKey()


# What is started in the background, or by nohup, ignores these, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


# xdist's own --dist=loadgroup would do, but xdist 3.8 tells groups by a private name that pytest 9.2 has not.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For several processes (``-n 2``): keep together what shares fixtures that take minutes."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return share_of(nodeid)

    return Scheduling(config, log)


def share_of(nodeid: str) -> str:
    """What runs in one process: a module, or its tests of one engine; all of an image or a daemon."""
    module, _, test = nodeid.partition("::")
    if module in _OF_THE_CORE:
        return _OF_THE_CORE[0]
    engine = _ENGINES.search(test.partition("[")[2])
    if module in _APART:
        return f"{module}::{test.partition('[')[0]}"
    if engine is None:
        return _OF_THE_SESSION if _takes_the_daemon(module) else module
    return _OF_THE_SESSION if engine[0] == _OF_THE_SESSION else f"{module}[{engine[0]}]"


@functools.cache
def _takes_the_daemon(module: str) -> bool:
    return re.search(r"\bdocker26\b", (GOLDEN.parents[1] / module).read_text()) is not None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all tests for real as ``real``, and begin with what takes longest."""
    config.stash[_MARKS] = {item.nodeid: {mark.name for mark in item.iter_markers()} for item in items}
    for item in items:
        if config.stash[_MARKS][item.nodeid] & set(STAGES):
            item.add_marker("real")

    # Whole stories first, those of most tests before others: a long one at the end leaves processes idle.
    # Before all, what needs the most disk: the others' engines keep what they build.
    tests = Counter(share_of(item.nodeid) for item in items)

    def turn(item: pytest.Item) -> tuple[bool, bool, bool, int, str]:
        if not item.get_closest_marker("real"):
            return True, True, True, 0, ""
        share = share_of(item.nodeid)
        story = share == _OF_THE_SESSION or share.startswith(("tests/engines/", "tests/real/"))
        return False, share != _LARGEST, not story, -tests[share], share

    items.sort(key=turn)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where some stages alone are asked for, leave out modules that have no test of them, as most have."""
    stages = frozenset(config.option.markexpr.split(" or "))
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    left_out = is_test and stages <= {*STAGES} and not may_have_tests_of(collection_path, stages)
    return True if left_out else None


def may_have_tests_of(module: Path, stages: frozenset[str]) -> bool:
    """Return whether the text of a module, or of what it takes from ``support``, has the mark of a stage."""
    text = module.read_text()
    marked = _supports_with(stages)
    return _has_mark(text, stages) or any(name in marked for name in re.findall(r"support\.(\w+)", text))


@functools.cache
def _supports_with(stages: frozenset[str]) -> frozenset[str]:
    files = (Path(__file__).parent / "support").glob("*.py")
    return frozenset(each.stem for each in files if _has_mark(each.read_text(), stages))


def _has_mark(text: str, stages: frozenset[str]) -> bool:
    return any(f"mark.{each}" in text for each in stages)


def pytest_collection_finish() -> None:
    """Keep the thousands of tests, which stay, from being looked through for garbage again and again."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def spread(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests delete by the thousand is not to slow what the next ones make."""
    spread_below(tmp_path_factory.getbasetemp())


@pytest.fixture
def marks_of_all(request: pytest.FixtureRequest) -> Mapping[str, set[str]]:
    """Node ID → names of the marks, for all tests that were collected, those left out too."""
    return request.config.stash[_MARKS]


# --- what is left out by default is named, and how to run it ---


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    config = items[0].config
    if config.option.markexpr in config.getini("addopts") and not config.option.keyword:
        marks = [config.stash[_MARKS][item.nodeid] for item in items]
        stages = (stage for each in marks for stage in STAGES if stage in each)
        config.stash[_LEFT_OUT] = dict(Counter(stages))


def pytest_sessionfinish(session: pytest.Session) -> None:
    # A process of pytest-xdist's, which ends with what it says to the one that speaks to the user.
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(_LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left = config.stash.get(_LEFT_OUT, {})
    for stage, tests in sorted(left.items()):
        noun = "test" if tests == 1 else "tests"
        line = f"left out: {tests} {noun} of the stage {stage}; run them with: .venv/bin/pytest -m {stage}"
        terminalreporter.write_line(line)
    if left:
        terminalreporter.write_line(".ci/run installs what they need, and runs all of them")


# --- homes and golden files ---


@pytest.fixture(scope="session")
def _known_interpreters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What uv keeps of the Pythons that it has asked: without it, each test's first uv would ask again."""
    kept = tmp_path_factory.mktemp("interpreters")
    command = ["uv", "python", "find", "--cache-dir", str(kept), "--no-config", sys.executable]
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    return kept


@pytest.fixture(autouse=True)
def _own_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, _known_interpreters: Path
) -> None:
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
    (home / ".cache" / "uv").mkdir(parents=True)
    for kept in _known_interpreters.glob("interpreter-*"):
        (home / ".cache" / "uv" / kept.name).symlink_to(kept)
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
