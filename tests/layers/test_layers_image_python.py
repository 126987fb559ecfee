"""What the image's own interpreter makes: its environment and bytecode."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.host.home import Home
from reprobuild.layers import schedule
from reprobuild.layers.plan import place
from reprobuild.lock.model import Lock
from support.building import lock_for
from support.built_layers import TAG, build_all, left_over, unpack
from support.fixtures import fixtures_of
from support.wheels import Item, put, simple_wheel, wheel_bytes

globals().update(fixtures_of("support.built_layers"))


def test_bytecode_is_ours_and_is_imported(home: Home, ran: list[str], tmp_path: Path) -> None:
    pyc = f"toy/__pycache__/other.{TAG}.pyc"
    files: dict[str, bytes | str | Item] = {
        "toy/__init__.py": "",
        "toy/other.py": "VALUE = 1\n",
        "toy/broken.py": "def (:\n",
        pyc: b"shipped",
        "toy/__pycache__/other.cpython-27.pyc": b"for another Python",
        f"toy/__pycache__/alone.{TAG}.pyc": b"without a source",
    }
    lock = lock_for(home, [put(home, "toy", wheel_bytes("toy", "1", files))])
    site = unpack(home, build_all(lock, home), tmp_path / "root") / place(lock).site
    assert (site / pyc).read_bytes()[4:8] == (1).to_bytes(4, "little")
    assert (site / "toy/__pycache__/other.cpython-27.pyc").read_bytes() == b"for another Python"
    assert (site / f"toy/__pycache__/alone.{TAG}.pyc").read_bytes() == b"without a source"
    assert not (site / f"toy/__pycache__/broken.{TAG}.pyc").exists()
    (site / "toy/other.py").write_text("VALUE = 22222\n")
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import toy.other as o; print(o.VALUE, o.__file__)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", str(site / "toy/other.py")]


def test_an_interpreter_of_a_strangers_puts_nothing_of_its_own_into_a_layer(
    home: Home, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a base image with a ``.pth`` could: the same layer would serve locks without that base."""
    honest = vars(schedule)["run_interpreter"]

    def evil(lock: Lock, below: Sequence[Path], workshop: Path, *, environment: bool) -> Path:
        upper: Path = honest(lock, below, workshop, environment=environment)
        with (workshop / "stage/toy.bytecode").open("ab") as answer:
            answer.write(b'["/etc/evil", 4]\nevil')
        return upper

    monkeypatch.setattr(schedule, "run_interpreter", evil)
    lock = lock_for(home, [put(home, "toy", simple_wheel("toy"))])
    with pytest.raises(BuildError, match=r"toy: it has 'etc/evil', which was not asked for"):
        build_all(lock, home)
    assert left_over(home) == []
    assert not [p for p in home.folder("layers").iterdir() if b"etc/evil" in p.read_bytes()]


@pytest.mark.parametrize("at", ["opt", "opt/venv"])
def test_an_environment_that_is_a_link_is_not_followed(
    home: Home, ran: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at: str
) -> None:
    honest = vars(schedule)["run_interpreter"]
    (tmp_path / "host/venv").mkdir(parents=True)
    (tmp_path / "host/venv/secret").write_text("secret")

    def evil(lock: Lock, below: Sequence[Path], workshop: Path, *, environment: bool) -> Path:
        honest(lock, below, workshop, environment=False)
        upper = workshop / "evil"
        (upper / at).parent.mkdir(parents=True)
        (upper / at).symlink_to(tmp_path / "host" / at.removeprefix("opt").lstrip("/"))
        return upper

    monkeypatch.setattr(schedule, "run_interpreter", evil)
    with pytest.raises(BuildError, match="made no environment: /opt/venv is not a folder"):
        build_all(lock_for(home, []), home)
    assert left_over(home) == []


def test_names_in_tracebacks_are_those_of_the_image(home: Home, ran: list[str], tmp_path: Path) -> None:
    lock = lock_for(home, [put(home, "toy", simple_wheel("toy"))])
    site = unpack(home, build_all(lock, home), tmp_path / "root") / place(lock).site
    data = (site / f"toy/__pycache__/__init__.{TAG}.pyc").read_bytes()
    assert f"/{place(lock).site}/toy/__init__.py".encode() in data
    assert str(tmp_path).encode() not in data
