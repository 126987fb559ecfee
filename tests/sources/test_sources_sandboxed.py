"""Builds of synthetic packages in a real sandbox, with what a build may try."""

from __future__ import annotations

import json
import uuid
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.errors import BuildError, HostError
from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.sources import sandboxed
from reprobuild.sources.normalize_wheel import first_difference
from reprobuild.sources.sandboxed import BuildRoot, MoreRequiredError, Recipe, build
from reprobuild.sources.source_archive import build_system
from support.python_root import INTERPRETER, PYTHON, python_root
from support.sdists import sdist, stored
from support.wheels import put, toy_pip

TELLS = """
import multiprocessing, platform, socket, sys
def told():
    stat = os.stat("backend.py")
    return {
        "count": os.cpu_count(), "affinity": len(os.sched_getaffinity(0)),
        "processes": multiprocessing.cpu_count(), "folder": os.getcwd(), "umask": os.umask(0),
        "epoch": os.environ["SOURCE_DATE_EPOCH"], "host": socket.gethostname(), "mine": os.environ["MINE"],
        "set": list({"b", "a", "c"}), "listed": os.listdir("."), "walked": next(os.walk("."))[2],
        "written": int(stat.st_mtime), "mode": stat.st_mode & 0o777,
        "capabilities": [line for line in open("/proc/self/status") if line.startswith("CapEff")],
    }
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> BuildRoot:
    needs("crun")
    return BuildRoot([python_root(tmp_path_factory.mktemp("root"))], INTERPRETER, PYTHON)


class Bench:
    """A home in which packages are built."""

    def __init__(self, folder: Path, root: BuildRoot) -> None:
        self.home, self.root = Home(folder), root
        self.store = Store(self.home)

    def build(
        self, body: bytes, *, second: bool = False, ask: bool = False, env: Mapping[str, str] | None = None
    ) -> Path:
        source = stored(self.store, "thing", "1.0", body)
        recipe = Recipe(
            name="thing",
            version="1.0",
            filename=source.filename,
            sha256=source.sha256,
            system=build_system(self.store.path(source.sha256), source.filename),
            wheels=[put(self.home, "pip", toy_pip(), "26.0")],
            env=env or {},
        )
        with self.home.scratch("source") as scratch:
            built = build(recipe, self.root, self.store, scratch, second=second, ask=ask)
            return built.rename(self.home.folder("reports") / f"{second}-{built.name}")

    def told(self, more: str, env: Mapping[str, str]) -> dict[str, object]:
        """Return what a build writes into its wheel: the value of ``told()``, by ``more``."""
        own = more + '\ndef files():\n    import json\n    return {"thing/told.json": json.dumps(told())}\n'
        with zipfile.ZipFile(self.build(sdist("thing", "1.0", more=own), env=env)) as wheel:
            found: dict[str, object] = json.loads(wheel.read("thing/told.json"))
        return found

    def fails(self, body: str) -> BuildError:
        """Return the error of a build whose ``build_wheel`` begins with ``body``."""
        more = "def files():\n" + "".join(f"    {line}\n" for line in body.splitlines())
        with pytest.raises(BuildError) as caught:
            self.build(sdist("thing", "1.0", more=more))
        assert caught.value.message.startswith("thing 1.0: ")
        assert not list(self.home.folder("tmp").iterdir())
        return caught.value


@pytest.fixture
def bench(tmp_path: Path, root: BuildRoot) -> Bench:
    return Bench(tmp_path / "home", root)


@pytest.mark.slow
def test_a_build_sees_the_same_machine_wherever_it_runs(bench: Bench) -> None:
    told = bench.told(TELLS, {"MINE": "set"})
    assert told | {"set": None} == {
        "count": 1,
        "affinity": 1,
        "processes": 1,
        "folder": "/build/src/thing-1.0",
        "umask": 0o022,
        "epoch": "315532800",
        "host": "reprobuild",
        "set": None,
        "mine": "set",
        "listed": ["backend.py", "pyproject.toml"],
        "walked": ["backend.py", "pyproject.toml"],
        "written": 315532800,
        "mode": 0o644,
        "capabilities": ["CapEff:\t0000000000000000\n"],
    }


def test_two_states_give_one_wheel_and_one_that_stamps_the_time_two(bench: Bench) -> None:
    listed = '{list({*"abcdef"})} {os.cpu_count()} {os.listdir()} {time.asctime()}'
    lists = f"    return {{'thing/set.py': f'{listed}'}}"
    more = f"print('what a backend says')\ndef files():\n{lists}"
    body = sdist("thing", "1.0", {"a.txt": "a", "b.txt": "b"}, more=more)
    assert bench.build(body).read_bytes() == bench.build(body, second=True).read_bytes()
    stamp = "def files():\n    return {'thing/__init__.py': 'x', 'thing/when.py': str(time.time_ns())}"
    body = sdist("thing", "1.0", more=stamp)
    one, two = bench.build(body), bench.build(body, second=True)
    assert first_difference(one, two, "thing") == "thing/when.py differs"


def test_the_date_is_that_of_the_epoch_to_who_asks_for_none(bench: Bench) -> None:
    more = (
        "import logging, os\n"
        "def files():\n"
        "    record = logging.makeLogRecord({'created': 86400, 'msecs': 0})\n"
        "    said = [time.asctime(), time.strftime('%Y'), time.ctime(None), str(time.gmtime().tm_year),\n"
        "            str(time.localtime(0).tm_year), time.strftime('%Y', time.gmtime(0)),\n"
        "            logging.Formatter().formatTime(record), str(time.time() > 1e9)]\n"
        "    return {'thing/__init__.py': chr(10).join(said)}\n"
    )
    with zipfile.ZipFile(bench.build(sdist("thing", "1.0", more=more))) as wheel:
        said = wheel.read("thing/__init__.py").decode().splitlines()
    day = "Tue Jan  1 00:00:00 1980"
    assert said == [day, "1980", day, "1980", "1970", "1970", "1970-01-02 00:00:00,000", "True"]


def test_datetime_gives_that_day_too_and_stays_the_class_that_it_is(bench: Bench) -> None:
    more = (
        "import copy, datetime as d, pickle, _datetime\n"
        "class Own(d.datetime): pass\n"
        "plain = _datetime.datetime(2020, 1, 2)\n"
        "def files():\n"
        "    now = d.datetime.now()\n"
        "    said = [now, d.datetime.utcnow(), d.datetime.today(), d.date.today(), Own.now(),\n"
        "            d.datetime.now(d.timezone(d.timedelta(hours=1))), repr(now),\n"
        "            [isinstance(plain, d.datetime), isinstance(plain, d.date), isinstance(plain, Own)],\n"
        "            [issubclass(d.datetime, d.date), isinstance(d.date.today(), d.datetime)],\n"
        "            [pickle.loads(pickle.dumps(now)) == now == copy.copy(now), plain > now,\n"
        "             type(now + d.timedelta(1)) is d.datetime, d.datetime.strptime('2020', '%Y') < plain]]\n"
        "    return {'thing/__init__.py': chr(10).join(map(str, said))}\n"
    )
    with zipfile.ZipFile(bench.build(sdist("thing", "1.0", more=more))) as wheel:
        said = wheel.read("thing/__init__.py").decode().splitlines()
    day = "1980-01-01 00:00:00"
    assert said[:6] == [day, day, day, "1980-01-01", day, "1980-01-01 01:00:00+01:00"]
    assert said[6] == "datetime.datetime(1980, 1, 1, 0, 0)"
    assert said[7:] == ["[True, True, False]", "[True, False]", "[True, True, True, True]"]


@pytest.mark.slow
def test_a_backend_may_ask_for_more(bench: Bench) -> None:
    more = "def get_requires_for_build_wheel(settings=None):\n    return ['cython>=3']\n"
    with pytest.raises(MoreRequiredError) as caught:
        bench.build(sdist("thing", "1.0", more=more), ask=True)
    assert caught.value.requirements == ("cython>=3",)


def test_what_the_setup_py_imports_is_named_before_the_next_build_lacks_it(bench: Bench) -> None:
    """As flash-attn: the first failure names all that its setup.py will ask for."""
    setup = "import packaging, local\nimport torch.utils.cpp_extension as made\nmade.CUDAExtension()\n"
    files = {"setup.py": setup, "local.py": ""}
    bench.root = replace(bench.root, cuda="12.8")
    more = "def files():\n    import torch\n"
    with pytest.raises(BuildError, match="No module named 'torch'") as caught:
        bench.build(sdist("thing", "1.0", files, more=more))
    assert (
        "give --build-torch thing --build-requires thing:packaging --build-apt g++ "
        f"--build-apt python{PYTHON}-dev, or add"
    ) in caught.value.hint
    assert "its CUDA code cannot be compiled for CUDA 12.8" in caught.value.hint


def test_a_build_has_no_network(bench: Bench) -> None:
    error = bench.fails("import urllib.request\nurllib.request.urlopen('http://192.0.2.1/')")
    assert "Network is unreachable" in error.message
    assert "a build has no network" in error.hint


def test_a_build_writes_to_its_folder_alone(bench: Bench) -> None:
    error = bench.fails("open('/usr/lib/mine', 'w')")
    assert "Read-only file system: '/usr/lib/mine'" in error.message
    assert "a build can write only below /build, not to /usr/lib/mine" in error.hint


def test_a_build_cannot_fill_the_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxed, "FOLDER_BYTES", 32 << 20)
    error = bench.fails("with open('big', 'wb') as big:\n    while True:\n        big.write(bytes(1 << 20))")
    assert "No space left on device" in error.message
    assert "a build may write" in error.hint


def test_a_build_that_never_ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(sandboxed.SECONDS, "2")
    error = bench.fails("while True: pass")
    assert error.message == "thing 1.0: its build did not end within 2 s"
    assert "REPROBUILD_BUILD_SECONDS" in error.hint


def test_a_build_that_forks_for_ever(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_PROCESSES", "60")
    # One after the other: where no control group counts, a burst would starve the tests beside this one.
    error = bench.fails("while True:\n    if os.fork() == 0:\n        time.sleep(600)\n    time.sleep(0.005)")
    assert "its build was stopped: it started more than 60 processes" in error.message


@pytest.mark.slow
def test_a_build_that_wants_more_memory_than_it_may(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPROBUILD_MEMORY", "256M")
    error = bench.fails("x = [bytearray(1 << 20) for _ in range(1024)]")
    assert "its build was stopped: it took more than 256 MiB of memory" in error.message


def test_a_build_that_prints_without_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxed, "MOST_OUTPUT", 1 << 20)
    error = bench.fails("while True: print('x' * 100000, flush=True)")
    assert "stopped: it wrote more than 1048576 bytes" in error.message


def test_what_a_build_leaves_running_ends_with_it(bench: Bench) -> None:
    mark = f"left-by-{uuid.uuid4()}"
    code = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {mark!r}"
    code += "; print('here', flush=True); time.sleep(600)"
    more = "import subprocess, sys\nstarted = subprocess.Popen("
    more += f"[sys.executable, '-c', {code!r}], start_new_session=True, stdout=subprocess.PIPE)"
    # By then it has its command line, which it does not have from its very start.
    more += "\nstarted.stdout.readline()"
    more += "\ndef files():\n    return {'thing/seen.py': str(b'left-by' in open("
    more += "f'/proc/{started.pid}/cmdline', 'rb').read())}"
    built = bench.build(sdist("thing", "1.0", more=more))
    with zipfile.ZipFile(built) as wheel:
        assert wheel.read("thing/seen.py") == b"True"
    assert mark.encode() not in b"".join(map(_command, Path("/proc").glob("[0-9]*/cmdline")))


def _command(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # a process that has ended since
        return b""


@pytest.mark.slow
def test_a_wheel_of_another_package_is_refused(bench: Bench) -> None:
    with pytest.raises(BuildError, match=r"^thing 1\.0: its build made a wheel of other 1\.0$"):
        bench.build(sdist("thing", "1.0", claims="other"))
    with pytest.raises(BuildError, match=r"^thing 1\.0: its build made a wheel of thing 1\.0\.post1$"):
        bench.build(sdist("thing", "1.0", more="VERSION = '1.0.post1'"))


def test_what_is_no_wheel_is_refused(bench: Bench) -> None:
    own = """
def build_wheel(folder, *rest):
    open(folder + "/thing-1.0-py3-none-any.whl", "w").write("no zip")
    return "thing-1.0-py3-none-any.whl"
"""
    body = sdist("thing", "1.0", {"backend.py": own})
    with pytest.raises(BuildError, match=r"thing 1\.0: its wheel cannot be read"):
        bench.build(body)


def test_a_name_that_is_a_path_is_none(bench: Bench) -> None:
    own = "def build_wheel(folder, *rest):\n    return '../../../etc/passwd'\n"
    with pytest.raises(BuildError, match=r"thing 1\.0"):
        bench.build(sdist("thing", "1.0", {"backend.py": own}))


def test_seconds_is_a_number() -> None:
    assert sandboxed.seconds({}) == 3600
    with pytest.raises(HostError, match="REPROBUILD_BUILD_SECONDS: 'soon' is not a number of seconds"):
        sandboxed.seconds({sandboxed.SECONDS: "soon"})


@pytest.mark.slow
def test_a_build_that_writes_the_answer_itself(bench: Bench) -> None:
    """It may reach what the program writes to; more than a wheel that is refused does not come of it."""
    error = bench.fails(
        "import os\n"
        "for number in os.listdir('/proc/1/fd'):\n"
        "    try:\n"
        "        with open(f'/proc/1/fd/{number}', 'w') as file:\n"
        "            file.write('[' * 100000)\n"
        "    except OSError:\n"
        "        pass\n"
        "os._exit(0)"
    )
    assert error.message.startswith("thing 1.0: it could not be built")
