from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from reprobuild.errors import ResolveError
from reprobuild.host.console import Console
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import DebianPackage
from reprobuild.lock.reader import parse_lock
from reprobuild.resolve import constraint_loop
from reprobuild.resolve import resolver as module
from reprobuild.resolve.debian import DebianRequest
from reprobuild.resolve.resolver import Upgrade, resolve_platforms
from reprobuild.resolve.uv_command import resolve_python
from support.hosts import quiet_host
from support.index import Index, serve_index
from support.resolving import BASE, LINUX, debian, request

pytest_plugins = ["support.family"]

CONSOLE = Console(quiet=True)


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> list[tuple[DebianRequest, dict[str, str]]]:
    """Stand in for apt, which test_resolve_debian.py tests: what was asked, and which pins were given."""
    asked: list[tuple[DebianRequest, dict[str, str]]] = []

    def answer(wanted: DebianRequest, *, keep: dict[str, str], console: Console) -> tuple[DebianPackage, ...]:
        asked.append((wanted, dict(keep)))
        return (*BASE, *(debian(name, "1.0") for name in wanted.apt))

    monkeypatch.setattr("reprobuild.resolve.debian_system.resolve_debian", answer)
    monkeypatch.setattr(module, "architecture", lambda: "amd64")
    return asked


def lock(existing: Lock | None = None, *, upgrade: Upgrade | None = None, **keys: Any) -> Lock:
    wanted = request(**{key.replace("_", "-"): value for key, value in keys.items() if value is not None})
    before = [] if existing is None else [existing]
    (found,) = resolve_platforms(wanted, existing=before, upgrade=upgrade or Upgrade(), host=quiet_host())
    return found


def versions(found: Lock) -> dict[str, str]:
    return {package.name: package.version for package in found.python}


@pytest.mark.parametrize("patch", ["3.11.2", "3.11.9"])
def test_markers_and_what_packages_require_are_held_against_the_whole_version_of_python(
    family: Index, apt: list[Any], monkeypatch: pytest.MonkeyPatch, patch: str
) -> None:
    """A patch version that is not the expected one is known from apt's answer alone."""
    others = tuple(debian("python3.11", f"{patch}-6") if p.name == "python3.11" else p for p in BASE)
    monkeypatch.setattr("reprobuild.resolve.debian_system.resolve_debian", lambda *_, **__: others)
    for name in ("old", "new", "choice"):
        family.add(name, "1.0")
    family.add("choice", "2.0", python=">=3.11.4")
    markers = ["old ; python_full_version < '3.11.4'", "new ; python_full_version >= '3.11.4'"]
    found = versions(lock(packages=[*markers, "choice"]))
    assert ("new" in found, "old" in found) == (patch == "3.11.9", patch == "3.11.2")
    assert found["choice"] == ("2.0" if patch == "3.11.9" else "1.0")


def test_a_lock_that_reads_back(family: Index, apt: list[Any]) -> None:
    family.files[-1].uploaded = "2025-01-02T03:04:05.678Z"
    found = lock(packages=["numpy<2"], apt=["git"], determinism={"seed": 7})
    assert found.stack == {"cuda": "12.1.105", "numpy": "1.26.4", "python": "3.11.2", "torch": "2.4.1"}
    assert found.epoch == 1735787045
    assert found.variables["REPROBUILD_SEED"] == "7"
    assert found.platform == "linux/amd64"
    assert [package.name for package in found.debian] == ["git", "libc6", "python3.11"]
    assert parse_lock(found.dump(), "test") == found


def test_same_inputs_same_bytes(family: Index, apt: list[Any]) -> None:
    first = lock().dump()
    family.files.reverse()
    assert lock().dump() == first
    assert lock(parse_lock(first, "test")).dump() == first


def test_epoch_without_times(family: Index, apt: list[Any]) -> None:
    for file in family.files:
        file.uploaded = None
    assert lock().epoch == 315532800


def test_pins_stay_and_move(family: Index, apt: list[Any]) -> None:
    before = lock()
    family.add("torch", "2.4.2", tag=LINUX, requires=["nvidia-cuda-runtime-cu12==12.1.105", "filelock"])
    family.add("filelock", "2.0")
    old = versions(before)
    assert versions(lock(before)) == old
    assert versions(lock(before, upgrade=Upgrade(packages=("Torch",)))) == old | {"torch": "2.4.2"}
    assert versions(lock(before, upgrade=Upgrade(packages=("filelock",)))) == old | {"filelock": "2.0"}
    every = lock(before, upgrade=Upgrade(everything=True))
    assert versions(every) == old | {"torch": "2.4.2", "filelock": "2.0"}
    assert versions(lock(before, torch="2.4.0")) == old | {"torch": "2.4.0"}
    assert versions(lock(before, cuda="12.4"))["torch"] == "2.6.0"


def test_debian_stays_without_apt(family: Index, apt: list[Any]) -> None:
    before = lock()
    assert len(apt) == 1
    assert lock(before, packages=["filelock"]).debian == before.debian
    lock(before, upgrade=Upgrade(packages=("numpy",)))
    assert len(apt) == 1
    pins = {package.name: package.version for package in BASE}
    assert lock(before, apt=["git"]).debian != before.debian
    assert apt.pop()[1] == pins
    lock(before, upgrade=Upgrade(packages=("libc6",)))
    assert apt.pop()[1] == {"python3.11": pins["python3.11"]}
    lock(before, upgrade=Upgrade(everything=True))
    assert apt.pop()[1] == {}
    lock(before, base={"debian": "forky"})
    assert apt.pop()[1] == {}


def test_upgrade_of_what_is_not_locked(family: Index, apt: list[Any]) -> None:
    before = lock()
    with pytest.raises(ResolveError, match="nonsense cannot be upgraded"):
        lock(before, upgrade=Upgrade(packages=("numpy", "nonsense")))
    lock(None, upgrade=Upgrade(packages=("nonsense",)))


def test_torch_that_is_too_new_for_the_release(family: Index, apt: list[Any]) -> None:
    runtime = ["nvidia-cuda-runtime-cu12==12.1.105", "filelock"]
    family.add("torch", "2.4.9", tag="cp311-cp311-manylinux_2_38_x86_64", requires=runtime)
    assert versions(lock())["torch"] == "2.4.1"


@pytest.mark.parametrize("here", [(2, 17), (2, 36), (2, 41)])
def test_the_c_library_of_this_machine_has_no_say(
    family: Index, apt: list[Any], monkeypatch: pytest.MonkeyPatch, here: tuple[int, int]
) -> None:
    runtime = ["nvidia-cuda-runtime-cu12==12.8.90", "filelock"]
    family.add("nvidia-cuda-runtime-cu12", "12.8.90", tag="py3-none-manylinux2014_x86_64")
    family.add("torch", "2.8.0", tag="cp311-cp311-manylinux_2_28_x86_64", requires=runtime)
    family.add("torch", "2.8.1", tag="cp311-cp311-manylinux_2_38_x86_64", requires=runtime)
    ran = []

    def count(*arguments: Any, **options: Any) -> Any:
        ran.append(arguments)
        return resolve_python(*arguments, **options)

    monkeypatch.setattr("reprobuild.resolve.debian_system.glibc_here", lambda: here)
    monkeypatch.setattr(constraint_loop, "resolve_python", count)
    found = lock(cuda="12.8")
    assert versions(found)["torch"] == "2.8.0"
    # The first try finds nothing, is right, or is too new.
    assert len(ran) == {(2, 17): 1, (2, 36): 1, (2, 41): 2}[here]
    before = len(ran)
    assert lock(found, cuda="12.8").dump() == found.dump()
    assert len(ran) == before + 1


def test_debian_s_error_comes_before_torch_s(family: Index, apt: list[Any], monkeypatch: Any) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ResolveError("Debian bookworm has no Python 3.99; it has 3.11")

    monkeypatch.setattr("reprobuild.resolve.debian_system.resolve_debian", refuse)
    with pytest.raises(ResolveError, match="has no Python"):
        lock(python="3.99", base={"debian": "forky"})


def test_as_of_and_debian(family: Index, apt: list[Any]) -> None:
    day = date(2024, 9, 15)
    undated = lock()
    found = lock(undated, as_of=day)
    assert apt[-1][0].as_of == day
    lock(found, as_of=day)
    lock(found, as_of=day, packages=["filelock"])
    assert len(apt) == 2
    lock(found)
    assert apt[-1][0].as_of is None


class TestCpu:
    def test_an_index_of_cuda_builds_is_not_enough(self, family: Index, apt: list[Any]) -> None:
        with pytest.raises(ResolveError, match=r"only CUDA builds of torch: it gave 2\.9\.0") as caught:
            lock(cuda="cpu")
        for name in ("--index pytorch", "UV_INDEX", "UV_FIND_LINKS"):
            assert name in caught.value.hint

    def test_a_cuda_build_that_requires_nothing(self, family: Index, apt: list[Any]) -> None:
        family.add("torch", "3.0.0+cu130", tag=LINUX)
        with pytest.raises(ResolveError, match="only CUDA builds"):
            lock(cuda="cpu")

    @pytest.mark.parametrize("pinned", [None, "2.9.0"])
    def test_an_extra_index(
        self, family: Index, apt: list[Any], monkeypatch: pytest.MonkeyPatch, pinned: str | None
    ) -> None:
        with serve_index() as extra:
            extra.add("torch", "2.9.0+cpu", tag=LINUX, requires=["filelock"])
            monkeypatch.setenv("UV_INDEX", extra.url)
            found = lock(cuda="cpu", torch=pinned)
        assert found.stack == {"numpy": "2.1.0", "python": "3.11.2", "torch": "2.9.0+cpu"}
        wheel = next(package.wheel for package in found.python if package.name == "torch")
        assert wheel.url.startswith(extra.root)


def test_a_cpu_build_of_another_index_does_not_take_its_place(
    family: Index, apt: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_index() as extra:
        extra.add("torch", "2.4.1+cpu", tag=LINUX, requires=["filelock"])
        monkeypatch.setenv("UV_INDEX", extra.url)
        monkeypatch.setenv("UV_INDEX_STRATEGY", "unsafe-best-match")
        assert versions(lock())["torch"] == "2.4.1"
