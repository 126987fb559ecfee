"""The order of the steps: an image gets its name last, and only when it has passed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.engines import embedded
from reprobuild.engines.embedded import OciEngine
from reprobuild.errors import (
    BuildError,
    FetchError,
    HostError,
    LockError,
    ReprobuildError,
    ResolveError,
    SelfTestError,
    StorageError,
)
from reprobuild.fetch.arrivals import Arrivals
from reprobuild.host import namespaces, process, sandbox
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.image_documents import documents
from reprobuild.lock.model import Lock
from reprobuild.lock.own_files import OwnFiles
from reprobuild.lock.platforms import dump_locks
from reprobuild.lock.reader import parse_lock
from reprobuild.oci.store import ImageStore
from reprobuild.pipeline import steps as pipeline
from reprobuild.pipeline.steps import check_host, lock_env, lock_of, make_image, write_context
from reprobuild.pipeline.workspace import Env
from reprobuild.render.image_config import image_config
from reprobuild.render.own_files import other_files, own_files
from reprobuild.request.model import Request
from reprobuild.request.profiles import variables
from reprobuild.resolve.resolver import Upgrade
from reprobuild.selftest.run import SECONDS, SECONDS_OF_PACKAGE
from support.building import lock_for
from support.hosts import quiet_host
from support.locks import LOCK, OTHER_FILES
from support.reports import FAILED, Script, a_report, printing
from support.wheels import put, wheel_bytes

NAME = "reprobuild/torch:2.4.1-cu121-py311"

Steps = list[str]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Stand in for what takes minutes; the image has documents and no layers. Returns what was done."""
    done: Steps = []
    monkeypatch.setattr(pipeline, "check_host", lambda _lock: done.append("check"))
    monkeypatch.setattr(OciEngine, "check", lambda _, gpu: None)

    @contextmanager
    def fetching(*_: object) -> Iterator[Arrivals]:
        done.append("fetch")
        yield Arrivals()

    monkeypatch.setattr(pipeline, "fetching", fetching)

    def build(engine: OciEngine, lock: Lock, context: object, arrivals: Arrivals) -> str:
        done.append("build")
        return engine.images.add(documents(lock, image_config(lock), []))

    monkeypatch.setattr(OciEngine, "build", build)
    _container(printing(a_report()))(monkeypatch, done)
    return done


def _container(code: str) -> Callable[[pytest.MonkeyPatch, Steps], None]:
    def put(monkeypatch: pytest.MonkeyPatch, done: Steps) -> None:
        def runner(engine: OciEngine, digest: str) -> Script:
            names = [name for image in engine.images.images() for name in image.names]
            done.append("self-test" + (f" of {', '.join(names)}" if names else ""))
            return Script(code, digest=digest)

        monkeypatch.setattr(OciEngine, "runner", runner)

    return put


def names(home: Home) -> list[tuple[str, ...]]:
    return [image.names for image in OciEngine(quiet_host(home)).images.images()]


def test_the_name_comes_last(home: Home, steps: Steps) -> None:
    made = make_image(LOCK, None, "auto", quiet_host(home))
    # Had the image a name while it was tested, it would stand behind "self-test".
    assert steps == ["check", "fetch", "build", "self-test"]
    assert made.name == NAME
    assert made.report.passed
    assert made.report.digest == made.digest
    assert names(home) == [(NAME,)]
    kept = json.loads((home.folder("reports") / f"{made.digest[7:]}.json").read_text())
    assert kept == json.loads(json.dumps(made.report.to_dict()))


def test_the_name_that_was_asked_for(home: Home, steps: Steps) -> None:
    assert make_image(LOCK, "team/x:1", "off", quiet_host(home)).name == "team/x:1"
    assert names(home) == [("team/x:1",)]


def test_what_has_passed_here_is_not_tested_again(home: Home, steps: Steps) -> None:
    first = make_image(LOCK, None, "auto", quiet_host(home))
    again = make_image(LOCK, "team/again:1", "auto", quiet_host(home))
    assert (again.digest, again.report) == (first.digest, first.report)
    assert steps.count("self-test") == 1
    assert names(home) == [(NAME, "team/again:1")]
    # With a GPU asked for, it is another test.
    with pytest.raises(HostError, match="the self-test requires a GPU"):
        make_image(LOCK, None, "require", quiet_host(home))


def test_each_package_of_the_request_adds_to_the_time_that_a_self_test_may_take(
    home: Home, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """270 packages, each imported in a process of its own, took longer than the whole test may."""
    waited = []
    run = Script.run

    def timed(self: Script, argv: Sequence[str], *, timeout: float, gpu: bool) -> process.Completed:
        waited.append(timeout)
        return run(self, argv, timeout=timeout, gpu=gpu)

    monkeypatch.setattr(Script, "run", timed)
    text = dump_locks([LOCK]).encode()
    monkeypatch.setattr(ImageStore, "file", lambda _self, _digest, _path: text)
    make_image(LOCK, None, "off", quiet_host(home))
    assert waited == [SECONDS["battery"] + len(LOCK.request.packages) * SECONDS_OF_PACKAGE]
    assert LOCK.request.packages


def test_a_test_that_breaks_ends_the_trust_in_an_earlier_one(
    home: Home, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_image(LOCK, None, "auto", quiet_host(home))
    _container("import os; os._exit(139)")(monkeypatch, steps)
    assert make_image(LOCK, None, "auto", quiet_host(home)) == made
    with pytest.raises(SelfTestError, match="crashed"):
        pipeline.selftest_image(
            OciEngine(quiet_host(home)), made.digest, "auto", quiet_host(home), mode="full"
        )
    with pytest.raises(SelfTestError, match="crashed"):
        make_image(LOCK, None, "auto", quiet_host(home))


def test_a_failed_self_test_leaves_a_candidate_and_says_what_differed(
    home: Home, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    _container(printing(a_report(FAILED), status=1))(monkeypatch, steps)
    with pytest.raises(SelfTestError) as caught:
        make_image(LOCK, None, "auto", quiet_host(home))
    message = caught.value.message
    assert f"the self-test failed (conv2d), so {NAME} is not set" in message
    assert "conv2d: two processes differ" in message
    assert f"output: expected {'c' * 64}, got {'d' * 64}" in message
    assert names(home) == [()]
    [image] = OciEngine(quiet_host(home)).images.images()
    assert f"`reprobuild run {image.digest[:19]}`" in caught.value.hint
    assert (home.folder("reports") / f"{image.digest[7:]}.json").exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os._exit(139)", "crashed"),
        ("print('rubbish')", "not JSON"),
        ("pass", "no report"),
        (printing(a_report(), status=1), "contradicts its exit status"),
    ],
)
def test_a_self_test_that_breaks_gives_no_name(
    code: str, words: str, home: Home, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    _container(code)(monkeypatch, steps)
    with pytest.raises(SelfTestError, match=words):
        make_image(LOCK, None, "auto", quiet_host(home))
    assert names(home) == [()]
    # The next run works.
    _container(printing(a_report()))(monkeypatch, steps)
    assert make_image(LOCK, None, "auto", quiet_host(home)).name == NAME


def test_a_name_stays_where_it_was_when_the_new_image_fails(
    home: Home, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_image(LOCK, "team/x:1", "auto", quiet_host(home))
    _container(printing(a_report(FAILED), status=1))(monkeypatch, steps)
    monkeypatch.setattr("reprobuild.render.image_config.__version__", "9")  # another image
    with pytest.raises(SelfTestError):
        make_image(LOCK, "team/x:1", "auto", quiet_host(home))
    assert OciEngine(quiet_host(home)).images.find("team/x:1").digest == old.digest


@pytest.mark.parametrize("step", ["check_host", "fetching"])
def test_what_fails_before_the_build_leaves_no_image(
    step: str, home: Home, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise FetchError("no")

    monkeypatch.setattr(pipeline, step, fail)
    with pytest.raises(FetchError):
        make_image(LOCK, None, "auto", quiet_host(home))
    assert "build" not in steps
    assert names(home) == []


# --- Locks ---


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return Env(LOCK.request, tmp_path / "envs" / "torch-cu121.toml")


def answering(monkeypatch: pytest.MonkeyPatch, lock: Lock | ReprobuildError) -> list[tuple[Lock, ...]]:
    given: list[tuple[Lock, ...]] = []

    def resolve(request: Request, *, existing: tuple[Lock, ...], **others: object) -> tuple[Lock, ...]:
        given.append(existing)
        if isinstance(lock, ReprobuildError):
            raise lock
        return (lock,)

    monkeypatch.setattr(pipeline, "resolve_platforms", resolve)
    return given


LOCKED = replace(LOCK, own_files=own_files())


def test_a_lock_is_made_once(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    given = answering(monkeypatch, LOCK)
    assert lock_of(env, quiet_host()) == LOCKED
    assert lock_of(env, quiet_host()) == LOCKED
    assert given == [()]
    assert sorted(path.name for path in env.file.parent.iterdir()) == [env.lock_file.name, env.file.name]
    assert parse_lock(env.lock_file.read_text(), "") == LOCKED


def test_own_files_of_another_release_stay_until_they_are_moved(
    env: Env, home: Home, steps: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, LOCK)
    old = replace(LOCK, own_files=OTHER_FILES)
    env.file.parent.mkdir()
    env.lock_file.write_text(old.dump())
    assert lock_env(env, Upgrade(packages=("numpy",)), quiet_host()) == ((old,), (old,))
    told = (
        "warning: the lock was made by reprobuild 0.0.9, this is 0.1.0: their own files differ in "
        "golden.json, kernels.py, reprobuild.pth, reprobuild_hook.py, selftest.py. A build here puts in"
        " this one's"
    )
    assert told in capsys.readouterr().err
    made = make_image(old, "team/x:1", "off", quiet_host(home))
    said = capsys.readouterr().err
    assert said.count(told) == 1
    assert "`reprobuild lock --upgrade reprobuild` records them" in said
    labels = OciEngine(quiet_host(home)).images.find("team/x:1").labels
    # What the image says of itself is what went in.
    assert labels["dev.reprobuild.lock"] == LOCKED.digest != old.digest
    assert labels["dev.reprobuild.own-files"] == own_files().digest
    assert lock_env(env, Upgrade(packages=("reprobuild",)), quiet_host()) == ((LOCKED,), (old,))
    assert make_image(LOCKED, "team/x:1", "off", quiet_host(home)).digest == made.digest
    assert "own files" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (None, "the lock does not name reprobuild's own files; this is reprobuild"),
        (
            replace(own_files(), version="9.0"),
            "made by reprobuild 9.0, this is 0.1.0: their own files are the same",
        ),
        (
            replace(own_files(), sha256={**own_files().sha256, "golden.json": "0" * 64}),
            "made by another build of reprobuild 0.1.0: its own files differ in golden.json",
        ),
        (own_files(), ""),
    ],
)
def test_what_departs_of_own_files_is_told(own: OwnFiles | None, words: str) -> None:
    found = other_files(replace(LOCK, own_files=own))
    assert words in found
    assert bool(words) == bool(found)


def test_the_pins_of_the_lock_that_is_there_are_handed_on(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    given = answering(monkeypatch, LOCK)
    lock_env(env, Upgrade(), quiet_host())
    assert lock_env(env, Upgrade(packages=("numpy",)), quiet_host()) == ((LOCKED,), (LOCKED,))
    assert given == [(), (LOCKED,)]


def test_what_cannot_be_resolved_changes_no_file(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, ResolveError("no"))
    with pytest.raises(ResolveError):
        lock_env(env, Upgrade(), quiet_host())
    assert not env.file.parent.exists()


def test_a_broken_lock_is_replaced_only_when_no_pin_is_to_stay(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, LOCK)
    lock_env(env, Upgrade(), quiet_host())
    env.lock_file.write_text("broken")
    for upgrade in (Upgrade(), Upgrade(packages=("numpy",))):
        with pytest.raises(LockError):
            lock_env(env, upgrade, quiet_host())
    assert env.lock_file.read_text() == "broken"
    assert lock_env(env, Upgrade(everything=True), quiet_host()) == ((LOCKED,), ())


# --- The machine ---


@pytest.mark.parametrize("program", ["mmdebstrap", "unshare"])
def test_a_missing_program_is_named_with_its_package(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    which = process.which
    monkeypatch.setattr(
        process, "which", lambda name: None if name == program else which(name) or "/bin/true"
    )
    with pytest.raises(HostError, match=f"{program} is not installed") as caught:
        check_host(LOCK)
    assert caught.value.hint.startswith("apt-get install -y ")


def test_either_runtime_will_do(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()
    monkeypatch.setattr(namespaces, "check", lambda **_: None)
    monkeypatch.setattr(
        process, "which", lambda name: "/bin/true" if name in there or name not in sandbox.RUNTIMES else None
    )
    with pytest.raises(HostError, match="neither crun nor runc is installed"):
        OciEngine(quiet_host(home)).check(gpu=False)
    for name in sandbox.RUNTIMES:
        there = {name}
        OciEngine(quiet_host(home)).check(gpu=False)


def test_an_ordinary_user_needs_newuidmap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(process, "which", lambda name: None if name == "newuidmap" else f"/usr/bin/{name}")
    with pytest.raises(HostError, match="newuidmap") as caught:
        check_host(LOCK)
    assert caught.value.hint == "apt-get install -y uidmap"


def test_a_gpu_that_is_required_is_looked_for_first(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "gpu_missing", lambda: "no NVIDIA GPU on this machine")
    monkeypatch.setattr(pipeline, "fetching", lambda *_: pytest.fail("fetched"))
    with pytest.raises(HostError, match="--gpu require: no NVIDIA GPU on this machine"):
        make_image(LOCK, None, "require", quiet_host(home))


# --- render ---


def test_the_text_of_a_context_needs_neither_store_nor_programs(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "which", lambda _: None)
    out = tmp_path / "a" / "b"
    rendered = write_context(LOCK, out, artifacts=False, host=quiet_host(home))
    written: dict[str, Any] = {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }
    assert written == rendered.files
    assert not home.root.exists()


def test_variables_that_the_request_does_not_give_are_named(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever forges a lock of a request may set those of its profile."""
    own = variables(LOCK.request, LOCK.stack["numpy"])
    host = Host(home, Console())
    write_context(replace(LOCK, variables=own), tmp_path / "a", artifacts=False, host=host)
    assert "other variables" not in capsys.readouterr().err
    forged = replace(LOCK, variables={**own, "OMP_NUM_THREADS": "7"})
    write_context(forged, tmp_path / "b", artifacts=False, host=host)
    assert "OMP_NUM_THREADS is 7, not 1." in " ".join(capsys.readouterr().err.split())


def test_a_wheel_that_no_image_of_ours_would_have_gets_into_no_context(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip, which installs what is in a context, takes such a wheel."""
    for name in ("obtain", "check_host", "check_platform"):
        monkeypatch.setattr(pipeline, name, lambda *_: None)
    bad = wheel_bytes("torch", "1", {"torch-1.data/scripts/python3": "#!/bin/sh"})
    with pytest.raises(
        BuildError, match=r"torch: has the file '/opt/venv/bin/python3', which is the environment"
    ):
        write_context(
            lock_for(home, [put(home, "torch", bad)]), tmp_path / "x", artifacts=True, host=quiet_host(home)
        )
    assert not (tmp_path / "x").exists()


def test_a_context_elsewhere_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    (tmp_path / "stored").write_bytes(b"wheel")
    (tmp_path / "context/wheels").mkdir(parents=True)
    (tmp_path / "context/wheels/.partial").write_bytes(b"what a killed run of another lock left")
    pipeline._place(tmp_path / "stored", tmp_path / "context/wheels/a.whl")
    assert [path.name for path in (tmp_path / "context/wheels").iterdir()] == ["a.whl"]
    assert (tmp_path / "context/wheels/a.whl").read_bytes() == b"wheel"
    with pytest.raises(StorageError):
        pipeline._place(tmp_path / "gone", tmp_path / "context/wheels/b.whl")
    assert [path.name for path in (tmp_path / "context/wheels").iterdir()] == ["a.whl"]
