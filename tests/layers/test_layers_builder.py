"""lock and store → layers: with toy wheels and a stand-in for Debian here, the whole of it marked real."""

from __future__ import annotations

import random
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from reprobuild.errors import BuildError
from reprobuild.fetch.store import Store
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.in_image import manifest
from reprobuild.layers import plan as plan_module
from reprobuild.layers import schedule
from reprobuild.layers import split_large as parts_module
from reprobuild.layers.builder import MANIFEST, BuiltLayer, build_layers
from reprobuild.layers.cache import LayerCache
from reprobuild.layers.plan import place
from reprobuild.lock.model import Lock
from support.building import PYTHON, lock_for, without_debian
from support.wheels import Item, odd_wheel, put, simple_wheel, wheel_bytes

TAG = f"cpython-{PYTHON.replace('.', '')}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return without_debian(monkeypatch)


def build_all(lock: Lock, home: Home) -> tuple[BuiltLayer, ...]:
    return build_layers(lock, Store(home), Host(home, Console(quiet=True)))


def digests(layers: Sequence[BuiltLayer]) -> dict[str, str]:
    return {layer.title: layer.cached.layer.digest for layer in layers}


def unpack(home: Home, layers: Sequence[BuiltLayer], root: Path) -> Path:
    root.mkdir()
    for layer in layers:
        blob = LayerCache(home).blob(layer.cached.layer.digest).read_bytes()
        tar = zstandard.ZstdDecompressor().decompressobj().decompress(blob)
        subprocess.run(["tar", "-xp", "-C", str(root)], input=tar, check=True)
    return root


def left_over(home: Home) -> list[str]:
    return [path.name for path in home.folder("tmp").iterdir()]


def test_the_layers_hold_what_the_wheels_hold(home: Home, ran: list[str], tmp_path: Path) -> None:
    lock = lock_for(home, [put(home, "odd-name", odd_wheel()), put(home, "toy", simple_wheel("toy"))])
    root = unpack(home, build_all(lock, home), tmp_path / "root")
    site = root / place(lock).site
    assert (site / "toy/__init__.py").read_text() == "NAME = 'toy'\n"
    assert stat.S_IMODE((site / "odd/mine.sh").stat().st_mode) == 0o755
    assert (root / "opt/venv/share/odd/data.txt").exists()
    assert (root / "opt/venv/lib64").is_symlink()
    assert (root / "opt/venv/lib/odd.cmake").read_text() == "through the link\n"
    assert (root / "opt/venv/pyvenv.cfg").exists()
    assert (root / "opt/reprobuild/pylock.toml").read_text() == lock.dump()
    assert left_over(home) == []


def test_the_manifest_tells_of_every_file(home: Home, ran: list[str], tmp_path: Path) -> None:
    lock = lock_for(home, [put(home, "odd-name", odd_wheel())])
    root = unpack(home, build_all(lock, home), tmp_path / "root")
    folders = [f"{root}/{name}" for name in ("opt/venv", "usr")]
    done = subprocess.run([sys.executable, manifest.__file__, *folders], capture_output=True, check=True)
    assert done.stdout.decode().replace(f"{root}/", "/") == (root / MANIFEST).read_text()


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


@pytest.mark.parametrize("same", [True, False])
def test_of_two_wheels_with_one_path_the_first_by_name_wins(
    home: Home, ran: list[str], tmp_path: Path, same: bool
) -> None:
    # The larger is built first, and lies lower or higher by its rank; none of it matters.
    texts = ("WHO = 'same'\n", "WHO = 'same'\n") if same else ("WHO = 'a'\n", "WHO = 'b'\n")
    a = wheel_bytes("alpha", "1", {"shared/who.py": texts[0], "alpha.py": ""})
    b = wheel_bytes("nvidia-b", "1", {"shared/who.py": texts[1], "big.bin": Item(content=bytes(9 << 20))})
    lock = lock_for(home, [put(home, "alpha", a), put(home, "nvidia-b", b)])
    layers = build_all(lock, home)
    site = place(lock).site
    owners = {
        layer.title: {r.path for r in layer.cached.records if r.kind == "file" and "who" in r.path}
        for layer in layers
    }
    both = {f"{site}/shared/who.py", f"{site}/shared/__pycache__/who.{TAG}.pyc"}
    assert {title: paths for title, paths in owners.items() if paths} == {"alpha 1.0": both}
    root = unpack(home, layers, tmp_path / "root")
    assert (root / site / "shared/who.py").read_text() == texts[0]
    assert "shared/who.py" in (root / site / "nvidia_b-1.dist-info/RECORD").read_text()
    # Unless the request says which one.
    other = replace(lock, request=replace(lock.request, file_priority=("nvidia-b",)))
    root = unpack(home, build_all(other, home), tmp_path / "other")
    assert (root / site / "shared/who.py").read_text() == texts[1]


def test_a_file_where_another_package_has_a_folder_is_refused(home: Home, ran: list[str]) -> None:
    a, b = wheel_bytes("a", "1", {"x": "file"}), wheel_bytes("b", "1", {"x/y": "in a folder"})
    lock = lock_for(home, [put(home, "a", a), put(home, "b", b)])
    with pytest.raises(BuildError, match="is a file of a and a folder of another"):
        build_all(lock, home)


def test_the_second_build_runs_nothing(home: Home, ran: list[str]) -> None:
    lock = lock_for(home, [put(home, "toy", simple_wheel("toy"))])
    first = build_all(lock, home)
    # The interpreter once, or a second time for a layer that was written while it made the environment.
    assert ran in (["debian", "interpreter"], ["debian", "interpreter", "interpreter"])
    ran.clear()
    assert build_all(lock, home) == first
    assert ran == []


def test_another_home_another_hour_the_same_digests(
    tmp_path: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for index, cpus in enumerate(({0}, {0, 1})):
        home = Home(tmp_path / str(index))
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cpus=cpus: cpus)
        packages = [put(home, f"toy-{i}", simple_wheel(f"toy-{i}", more="X = {1, 2}\n")) for i in range(5)]
        found.append(digests(build_all(lock_for(home, packages[:: 1 - 2 * index]), home)))
    assert found[0] == found[1]


def test_a_changed_package_is_the_only_one_built(home: Home, ran: list[str]) -> None:
    toys = [put(home, f"toy-{i}", simple_wheel(f"toy-{i}")) for i in range(3)]
    before = digests(build_all(lock_for(home, toys), home))
    ran.clear()
    toys[1] = put(home, "toy-1", simple_wheel("toy-1", "2.0", more="NEW = 1\n"), "2.0")
    after = digests(build_all(lock_for(home, toys), home))
    assert set(after.items()) - set(before.items()) == {
        ("toy-1 2.0", after["toy-1 2.0"]),
        ("reprobuild's own files", after["reprobuild's own files"]),
    }
    assert ran == ["interpreter"]


@pytest.mark.parametrize("harm", ["cut", "gone", "garbage"])
def test_a_damaged_cache_is_built_again(home: Home, ran: list[str], harm: str) -> None:
    lock = lock_for(home, [put(home, "toy", simple_wheel("toy"))])
    first = build_all(lock, home)
    for layer in first[:3]:
        blob = LayerCache(home).blob(layer.cached.layer.digest)
        blob.chmod(0o644)
        if harm == "cut":
            blob.write_bytes(blob.read_bytes()[:10])
        elif harm == "gone":
            blob.unlink()
    if harm == "garbage":
        for path in home.folder("layers").iterdir():
            path.write_text('{"layer": 3}')
    assert build_all(lock, home) == first
    assert all(
        LayerCache(home).blob(y.cached.layer.digest).stat().st_size == y.cached.layer.size for y in first
    )


@pytest.mark.parametrize(
    "data",
    [b"no zip", simple_wheel("toy")[:-40], wheel_bytes("toy", "1", {"../x": ""})],
    ids=["text", "cut", "hostile"],
)
def test_a_bad_artifact_names_its_package_and_leaves_nothing(home: Home, ran: list[str], data: bytes) -> None:
    lock = lock_for(home, [put(home, "toy", data)])
    with pytest.raises(BuildError, match=r"^toy: "):
        build_all(lock, home)
    assert left_over(home) == []


def test_damage_in_the_middle_of_a_wheel_stops_the_build(home: Home, ran: list[str]) -> None:
    data = bytearray(wheel_bytes("toy", "1", {"toy/x.bin": Item(content=bytes(range(256)) * 99, compress=0)}))
    data[5000] ^= 1
    good = put(home, "good", simple_wheel("good"))
    with pytest.raises(BuildError, match=r"toy/x.bin: its bytes in the wheel are damaged"):
        build_all(lock_for(home, [put(home, "toy", bytes(data)), good]), home)
    assert left_over(home) == []
    build_all(lock_for(home, [good]), home)


def test_a_file_that_is_not_what_its_record_says(home: Home, ran: list[str]) -> None:
    record = "toy/a.py,sha256=" + "A" * 43 + ",6\ntoy/b.py,sha256=,6\n"
    data = wheel_bytes("toy", "1", {"toy/a.py": "A = 1\n", "toy/b.py": "B = 1\n"}, record=record)
    lock = lock_for(home, [put(home, "toy", data)])
    with pytest.raises(BuildError, match=r"toy: toy/a\.py is not what the wheel's own RECORD says"):
        build_all(lock, home)
    assert left_over(home) == []
    build_all(replace(lock, request=replace(lock.request, allow_bad_record=("toy",))), home)


def test_a_package_in_parts_is_the_same_package(
    home: Home, ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shipped bytecode goes where its source is, so that ours takes its place in parts too."""
    rng = random.Random(1)
    files: dict[str, bytes | str | Item] = {f"toy/lib{n}.so": rng.randbytes(3000) for n in range(9)}
    files |= {"toy/__init__.py": "NAME = 1\n", f"toy/__pycache__/__init__.{TAG}.pyc": b"shipped"}
    lock = lock_for(
        home, [put(home, "toy", wheel_bytes("toy", "1", files)), put(home, "a", simple_wheel("a"))]
    )
    whole = build_all(lock, home)
    monkeypatch.setattr(plan_module, "PART_BYTES", 10_000)
    monkeypatch.setattr(parts_module, "_RUN", 1000)
    layers = build_all(lock, home)
    parts = [layer for layer in layers if layer.title.startswith("toy 1.0, part ")]
    assert [len(layer.cached.records) > 6 for layer in parts] == [True, True, True]
    assert max(layer.cached.layer.size for layer in parts) < 13_000
    records = [{r for y in each for r in y.cached.records} for each in (whole[:-1], layers[:-1])]
    assert records[0] == records[1]
    files_of = [r.path for y in parts for r in y.cached.records if r.kind == "file"]
    assert len(files_of) == len(set(files_of))
    assert sum(path.endswith(".pyc") for path in files_of) == 1


def test_many_packages_share_layers_with_the_same_result(
    home: Home, ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "MOST_WHEEL_LAYERS", 20)
    lock = lock_for(home, [put(home, f"toy-{i}", simple_wheel(f"toy-{i}")) for i in range(24)])
    layers = build_all(lock, home)
    assert len(layers) <= 23
    root = unpack(home, layers, tmp_path / "root")
    found = sorted((root / place(lock).site).glob(f"toy_*/__pycache__/__init__.{TAG}.pyc"))
    assert len(found) == 24
