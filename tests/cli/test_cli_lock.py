"""``lock`` and ``render``: requests and locks, good and bad, with an index on loopback."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from conftest import GOLDEN
from reprobuild.errors import RenderError
from reprobuild.lock.reader import parse_lock
from reprobuild.pipeline.workspace import read_lock
from reprobuild.request.model import Request
from support.bases import Pusher, files
from support.index import Index
from support.proxy import serve_proxy
from support.registry import serve_registry

if TYPE_CHECKING:
    from support.commands import Call  # pytest itself imports the plugin

pytest_plugins = ["support.commands", "support.family"]

REQUEST = Path("envs/torch-cu121.toml")
LOCK = Path("envs/pylock.torch-cu121.toml")


@pytest.fixture
def ready(family: Index, apt: None, folder: Path) -> Index:
    """An index with torch, an apt, and an empty folder."""
    return family


@pytest.fixture
def locked(ready: Index, call: Call) -> Index:
    """The same, with a request and its lock."""
    assert call("-q", "lock", "--cuda", "12.1").status == 0
    return ready


def test_behind_a_company_s_proxy_with_a_ca_of_its_own(
    ready: Index, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv's requests and our own: neither the index nor its files are reached otherwise."""
    there = urlsplit(ready.url)
    hosts = dict.fromkeys(("index.example", "files.example"), f"http://{there.netloc}")
    ready.elsewhere = "https://files.example"
    with serve_proxy(tmp_path, hosts, login="me:word") as proxy:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"https://index.example{there.path}")
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        proxy.trust(monkeypatch)
        said = call("lock", "--cuda", "12.1")
        assert (said.status, "word" in said.err) == (0, False), said.err
        assert proxy.hosts == {"index.example", "files.example"}
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("word", "wrong"))
        said = call("lock", "--cuda", "12.1", "--name", "again")
        assert said.status != 0
        assert "wrong" not in said.err


def write(name: str, text: str) -> Path:
    path = Path("envs") / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def versions(path: Path = LOCK) -> dict[str, str]:
    return {p.name: p.version for p in parse_lock(path.read_text(), "test").python}


# --- Good requests ---


def test_flags_make_a_request_and_its_lock(ready: Index, call: Call) -> None:
    said = call("lock", "--cuda", "12.1")
    assert said.status == 0
    assert said.out.startswith("envs/pylock.torch-cu121.toml: new\nPyTorch  2.4.1\nCUDA     12.1.105\n")
    assert all(len(line) <= 80 for line in said.out.splitlines())
    assert f"lock     {parse_lock(LOCK.read_text(), '').digest}" in said.out
    assert f"wrote {REQUEST}" in said.err
    assert not [path for path in Path("envs").iterdir() if path.name.startswith(".")]
    before = LOCK.read_bytes()
    assert call("lock", "--cuda", "12.1").out.startswith(f"{LOCK}: unchanged\n")
    assert LOCK.read_bytes() == before


def test_what_compiles_at_run_time_is_told_once(ready: Index, call: Call) -> None:
    ready.add("triton", "3.0")
    write("a", 'cuda = "12.1"\npackages = ["numpy<2", "triton"]')
    told = "· torch.compile and Triton kernels need a C++ compiler and Python's headers"
    assert told in call("lock").err
    assert told not in call("lock").err
    assert call("-q", "lock", "--upgrade").err == ""


def test_what_a_lock_of_another_tool_does_not_have_is_named(ready: Index, call: Call) -> None:
    """One that was made on Windows lacks what its packages need on Linux alone."""
    ready.add("frames", "1", requires=["watch; sys_platform == 'linux'"])
    ready.add("watch", "2")
    Path("Pipfile.lock").write_text(
        '{"default": {"frames": {"version": "==1"}, "numpy": {"version": "==1.26.4"}}}'
    )
    said = call("lock", "--from", "Pipfile.lock", "--cuda", "12.1")
    assert said.status == 0, said.err
    line = next(line for line in said.err.splitlines() if "not in Pipfile.lock" in line)
    assert line.startswith("· not in Pipfile.lock for this image, so of the newest version that fits: ")
    names = line.rpartition(": ")[2].split(", ")
    assert {"watch", "torch", "pip"} <= set(names)
    assert not {"frames", "numpy"} & set(names)


@pytest.mark.parametrize("name", ["Pipfile.lock", "requirements.txt"])
def test_a_pin_for_other_systems_does_not_count_for_this_one(ready: Index, call: Call, name: str) -> None:
    file = ready.add("frames", "1", requires=["watch"])
    frames, pinned = file.sha256, "0" * 64
    ready.add("watch", "2")
    elsewhere = "sys_platform == 'win32'"
    content = {
        "Pipfile.lock": json.dumps(
            {
                "default": {
                    "frames": {"version": "==1", "hashes": [f"sha256:{frames}"]},
                    "watch": {"version": "==1", "hashes": [f"sha256:{pinned}"], "markers": elsewhere},
                }
            }
        ),
        "requirements.txt": f"frames==1 --hash=sha256:{frames}\n"
        f"watch==1 ; {elsewhere} --hash=sha256:{pinned}\n",
    }
    Path(name).write_text(content[name])
    said = call("lock", "--from", name, "--cuda", "12.1")
    assert said.status == 0, said.err
    line = next(line for line in said.err.splitlines() if f"not in {name}" in line)
    assert line.startswith(f"· not in {name} for this image, so of the newest version that fits: ")
    assert "watch" in line


def test_quiet_prints_the_file_and_its_state_alone(ready: Index, call: Call) -> None:
    said = call("-q", "lock", "--cuda", "12.1")
    assert (said.status, said.out, said.err) == (0, f"{LOCK}: new\n", "")


def test_a_base_image(ready: Index, call: Call, tmp_path: Path) -> None:
    with serve_registry(tmp_path / "registry") as host:
        digest = Pusher(host, "team/base").image([files({"opt/libcudart.so.12": b"cuda"})])
        refused = call("lock", "--cuda", "12.1", "--base-image", f"{host}/team/base:1")
        assert (refused.status, refused.out) == (5, "")
        assert "/opt/libcudart.so.12" in refused.err
        assert "base.allow-cuda = true" in refused.err
        assert not Path("envs").exists()
        said = call("lock", "--cuda", "12.1", "--base-image", f"{host}/team/base:1", "--allow-cuda", "--json")
        [facts] = json.loads(said.out)
        assert facts["base"] == f"{host}/team/base@{digest}"
        assert REQUEST.read_text().endswith(
            f'[base]\nimage = "{host}/team/base:1"\nallow-cuda = true\n\n[determinism]\n'
            'profile = "strict"\nthreads = 1\n'
        )
        assert f"\nbase     {host}/team/base {digest[:19]}\n" in call("lock").out
        gone = call("lock", "--cuda", "12.4", "--base-image", f"{host}/team/none:1")
        assert (gone.status, "team/none has no 1" in gone.err) == (15, True)
    assert call("lock", "--check").status == 0


def test_json_is_alone_on_stdout(ready: Index, call: Call) -> None:
    [facts] = json.loads(call("lock", "--cuda", "12.1", "--json").out)
    assert (facts["file"], facts["state"], facts["moved"]) == (str(LOCK), "new", {})
    assert facts["stack"] == {"cuda": "12.1.105", "numpy": "1.26.4", "python": "3.11.2", "torch": "2.4.1"}
    assert facts["digest"] == parse_lock(LOCK.read_text(), "").digest


def test_an_error_alone_is_the_json_of_it(ready: Index, call: Call) -> None:
    said = call("lock", "--cuda", "99.9", "--name", "zz", "--json")
    assert (said.status, json.loads(said.out)["error"]["status"]) == (5, 5)
    write("a", 'cuda = "12.1"')
    write("b", 'cuda = "99.9"')
    said = call("lock", "--json")
    assert (said.status, [facts["state"] for facts in json.loads(said.out)]) == (5, ["new"])


def test_without_arguments_all_requests_get_their_turn(ready: Index, call: Call) -> None:
    write("a", 'cuda = "9.9"')
    write("b", 'cuda = "12.1"')
    write("c", 'cuda = "8.8"')
    said = call("lock")
    assert said.status == 5
    assert said.out.startswith("envs/pylock.b.toml: new\n")
    assert "CUDA 9.9" in said.err
    assert "CUDA 8.8" in said.err
    assert not Path("envs/pylock.a.toml").exists()


# --- Which request the flags mean ---


def test_cuda_alone_takes_the_request_that_is_there(ready: Index, call: Call) -> None:
    write("ours", 'cuda = "12.1"\ntorch = "2.4.0"')
    assert call("lock", "--cuda", "12.1").out.startswith("envs/pylock.ours.toml: new")
    assert call("lock", "--cuda", "12.1", "--torch", "2.4.1").out.startswith(f"{LOCK}: new")
    # Now two fit, and the one with the usual name counts.
    assert call("lock", "--cuda", "12.1").out.startswith(f"{LOCK}: unchanged")


def test_cuda_alone_means_the_request_that_ships(ready: Index, call: Call) -> None:
    """In an empty folder as in reprobuild's own repository, so that one name is one stack."""
    shipped = Request.parse((GOLDEN.parents[1] / REQUEST).read_text(), "shipped")
    assert call("lock", "--cuda", "12.1").status == 0
    assert Request.parse(REQUEST.read_text(), "written") == shipped
    assert versions()["numpy"] == "1.26.4"


def test_flags_go_on_top_of_the_request_that_ships(ready: Index, call: Call) -> None:
    argv = ("--package", "NumPy >=2", "--package", "filelock", "--seed", "3", "--name", "mine")
    assert call("lock", "--cuda", "12.1", *argv).status == 0
    request = Request.parse(Path("envs/mine.toml").read_text(), "written")
    assert (request.packages, request.seed) == (("NumPy>=2", "filelock"), 3)


def test_several_that_fit_are_listed(ready: Index, call: Call) -> None:
    write("one", 'cuda = "12.1"')
    write("two", 'cuda = "12.1"')
    said = call("lock", "--cuda", "12.1")
    assert (said.status, said.out) == (3, "")
    assert "envs/one.toml, envs/two.toml" in said.err
    assert "name one of them" in said.err


def test_a_request_of_that_name_is_never_changed(locked: Index, call: Call) -> None:
    before = REQUEST.read_bytes()
    said = call("lock", "--cuda", "12.1", "--package", "filelock")
    assert (said.status, said.out) == (3, "")
    assert f"{REQUEST} already exists and asks for something else" in said.err
    assert "--name" in said.err
    assert REQUEST.read_bytes() == before


# --- Bad requests ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('cuda = "12.1"\ncolour = "red"', "envs/x.toml: colour: unknown key"),
        ('cuda = "12.1"\n[base]\nlayers = "x"', "envs/x.toml: base.layers: unknown key"),
        ("cuda = 12.1", "envs/x.toml: cuda: expected text in quotes"),
        ('cuda = "12.1"\npackages = "numpy"', "envs/x.toml: packages: expected a list"),
        ('cuda = "12.1"\npackages = [1]', "envs/x.toml: packages[0]: expected text in quotes"),
        ('cuda = "12.1"\nas-of = "2024-09-15"', "envs/x.toml: as-of: expected a date without quotes"),
        (
            'cuda = "12.1"\ntorch = "new"',
            "envs/x.toml: torch: 'new' is not a valid torch",
        ),
        ('cuda = "twelve"', "envs/x.toml: cuda: 'twelve' is not"),
        ('python = "3.11"', "envs/x.toml: cuda: missing"),
        ('cuda = "12.1', "envs/x.toml: not valid TOML"),
        ('cuda = "12.1"\nname = "y"', "envs/x.toml: name: is 'y', but the file is called x.toml"),
    ],
)
def test_a_bad_request_is_refused_by_its_place(text: str, words: str, ready: Index, call: Call) -> None:
    write("x", text)
    for command in (["lock", "x"], ["image", "x"], ["render", "x", "-o", "out"]):
        said = call(*command)
        assert (said.status, said.out) == (3, "")
        assert words in said.err
    assert [path.name for path in Path("envs").iterdir()] == ["x.toml"]
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--cuda", "12"], "--cuda: '12' is not a valid cuda"),
        (["--cuda", "12.1", "--package", "a b"], "--package: 'a b' is not a PEP 508 requirement"),
        (["--cuda", "12.1", "--package", "torch"], "--torch 2.4.1"),
        (["--cuda", "12.1", "--seed", "-1"], "--seed: -1 is out of range: expected 0 to 4294967295"),
        (["--cuda", "12.1", "--as-of", "2024"], "--as-of: '2024' is not a day like 2024-09-15"),
        (
            ["--cuda", "12.1", "--debian", "Sid"],
            "--debian: 'Sid' is not a valid debian",
        ),
        (
            ["--cuda", "12.1", "--base-image", "A b"],
            "--base-image: 'A b' is not a valid image",
        ),
        (["--cuda", "12.1", "--allow-cuda"], "--allow-cuda: needs base.image"),
        (
            ["--cuda", "12.1", "--debian", "sid", "--base-image", "x"],
            "--debian: cannot be combined",
        ),
        (["--cuda", "12.1", "--name", "A"], "--name: 'A' is not a valid name: expected lower-case letters"),
        (["--cuda", "12.1", "--apt", "a;b"], "--apt: 'a;b' is not a valid name of a Debian package"),
        (["--cuda", "12.1", "--build-apt", "a;b"], "--build-apt: 'a;b' is not a valid name of a Debian"),
        (["--cuda", "12.1", "--build-torch", "a b"], "--build-torch: 'a b' is not the name of a Python"),
        (["--cuda", "12.1", "--build-env", "a"], "--build-env: 'a' does not say for which package"),
        (["--cuda", "12.1", "--build-env", "a:b"], "--build-env: 'a:b' does not say for which package"),
        (["--cuda", "12.1", "--build-env", "a:PATH=x"], "--build-env: reprobuild sets PATH itself"),
        (["--cuda", "12.1", "--build-requires", "a:/b"], "--build-requires: '/b' is not a PEP 508"),
        (["--cuda", "12.1", "--build-cuda", "a"], "--build-cuda: there is no nvcc for CUDA 12.1"),
        (["--cuda", "12.1", "--torch", "x"], "--torch: 'x' is not a valid torch"),
        (
            ["--cuda", "12.1", "--python", "3"],
            "--python: '3' is not a valid python",
        ),
    ],
)
def test_a_bad_flag_is_called_by_its_name(flags: list[str], words: str, call: Call, folder: Path) -> None:
    said = call("lock", *flags)
    assert (said.status, said.out) == (3, "")
    assert words in said.err
    assert not list(folder.iterdir())


def test_a_request_that_is_not_there(call: Call, ready: Index) -> None:
    write("one", 'cuda = "12.1"')
    assert "envs/none.toml: no such file\n  hint: envs/ has one" in call("lock", "none").err
    assert "is a lock, not a request\n  hint: give one.toml" in call("lock", "envs/pylock.one.toml").err


# --- What cannot be resolved ---


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--cuda", "9.9"], ["CUDA 9.9", "12.1 (torch 2.4.1)", "13.0 (torch 2.9.0)"]),
        (["--cuda", "12.1", "--torch", "2.6.0"], ["torch 2.6.0 is built for CUDA 12.4"]),
        (["--cuda", "12.1", "--torch", "99"], ["torch 99"]),
        (["--cuda", "12.1", "--package", "nosuchpackage"], ["nosuchpackage"]),
        (["--cuda", "12.1", "--package", "filelock>=2"], ["filelock"]),
    ],
)
def test_what_no_index_has(
    flags: list[str], words: list[str], ready: Index, call: Call, folder: Path
) -> None:
    said = call("lock", *flags)
    assert (said.status, said.out) == (5, "")
    assert all(word in said.err for word in words)
    assert not list(folder.iterdir())


def test_an_index_that_is_down(ready: Index, call: Call) -> None:
    ready.status = 503
    said = call("lock", "--cuda", "12.1")
    assert (said.status, said.out) == (5, "")
    assert ready.root.removeprefix("http://") in said.err


# --- Locks that cannot be used ---


def edit(old: str, new: str) -> None:
    text = LOCK.read_text()
    assert old in text
    LOCK.write_text(text.replace(old, new, 1))


def git(*argv: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@index.example"]
    subprocess.run(["git", *who, *argv], check=argv[0] != "merge", capture_output=True)


def test_a_lock_with_the_conflicts_of_a_merge(ready: Index, call: Call) -> None:
    """Pins that both sides have stay; the rest is resolved for the merged request."""
    ready.add("one", "1.0")
    ready.add("two", "1.0")
    ready.add("both", "1.0")
    git("init", "-q", "-b", "main")
    write("torch-cu121", 'cuda = "12.1"\npackages = [\n"numpy<2",\n"both",\n]\n')
    assert call("lock").status == 0
    git("add", ".")
    git("commit", "-qm", "base")
    for branch, package in (("ours", "one"), ("theirs", "two")):
        git("checkout", "-q", "-b", branch, "main")
        text = REQUEST.read_text()
        REQUEST.write_text(text.replace('"both",', f'"both", "{package}",'))
        upgraded = ["--upgrade", "filelock"] if branch == "theirs" else []
        assert call("lock", *upgraded).status == 0
        git("commit", "-qam", branch)
    git("checkout", "-q", "ours")
    git("merge", "theirs")
    assert "<<<<<<<" in LOCK.read_text()
    REQUEST.write_text('cuda = "12.1"\npackages = ["numpy<2", "both", "one", "two"]\n')
    for name in ("both", "one", "two"):
        ready.add(name, "2.0")
    said = call("lock", "--check")
    assert (said.status, said.out) == (4, "")
    assert f"{LOCK}: has conflicts of a merge\n  hint: run `reprobuild lock`" in said.err
    said = call("lock")
    assert said.status == 0, said.err
    assert "has conflicts of a merge; pins that both sides have stay" in said.err
    assert versions()["both"] == "1.0"
    assert versions().keys() >= {"one", "two"}
    assert call("lock", "--check").status == 0


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('version = "2.4.1"', 'version = "2.4.0"', "torch-2.4.1"),
        ("size = 1", "size = 2", "edited by hand"),
        (r"sha256 =", "md5 =", "hashes.md5: unknown key"),
        ("[tool.reprobuild]", "[tool.other]", "tool.other: unknown key"),
        ('lock-version = "1.0"', 'lock-version = "9.0"', "PEP 751"),
        ("[[packages]]", "<<<<<<< HEAD\n[[packages]]", "not valid TOML"),
    ],
)
def test_a_lock_changed_by_hand(old: str, new: str, words: str, locked: Index, call: Call) -> None:
    good = LOCK.read_bytes()
    edit(old, new)
    for command in (["lock"], ["lock", "--check"], ["image", "torch-cu121"], ["image", str(LOCK)]):
        said = call(*command)
        assert (said.status, said.out) == (4, ""), command
        assert said.err.startswith(f"reprobuild: {LOCK}: ")
        assert words in said.err
        assert "`reprobuild lock --upgrade`" in said.err
    # And what the hint says helps.
    assert call("lock", "--upgrade").status == 0
    assert LOCK.read_bytes() == good


def test_a_hash_is_missing(locked: Index, call: Call) -> None:
    LOCK.write_text(
        re.sub(r'hashes = \{.*?\}|\[packages\.wheels\.hashes\]\nsha256 = "\w+"', "", LOCK.read_text())
    )
    LOCK.write_text(re.sub(r'sha256 = "\w{64}"\n', "", LOCK.read_text(), count=1))
    said = call("lock", "--check")
    assert said.status == 4
    assert "hash" in said.err or "sha256" in said.err


def test_a_lock_for_another_request(locked: Index, call: Call) -> None:
    REQUEST.write_text(REQUEST.read_text().replace('"numpy<2"', '"filelock<1.1"'))
    for command in (["lock", "--check"], ["image", "--cuda", "12.1"], ["render", str(REQUEST), "-o", "out"]):
        said = call(*command)
        assert (said.status, said.out) == (4, "")
        assert "was made for a different request (packages: ['filelock<1.1'], there ['numpy<2'])" in said.err
        assert "`reprobuild lock`" in said.err
    said = call("lock")
    assert said.out.startswith(f"{LOCK}: changed\n")
    assert "moved    filelock 1.1 → 1.0" in said.out
    assert call("lock", "--check").status == 0


def test_a_lock_whose_request_is_gone(locked: Index, call: Call) -> None:
    gone = LOCK.with_name("pylock.gone.toml")
    gone.write_bytes(LOCK.read_bytes())
    LOCK.with_name("pylock.others.toml").write_text(
        'lock-version = "1.0"\ncreated-by = "uv"\npackages = []\n'
    )
    said = call("lock", "--check")
    assert (said.status, said.out.startswith(f"{LOCK}: unchanged")) == (4, True)
    assert f"{gone}: its request envs/gone.toml is not there\n  hint: restore the request" in said.err
    assert "others" not in said.err
    for named in (["lock", "--check", "torch-cu121"], ["lock"]):
        assert call(*named).status == 0


def test_check_writes_nothing(locked: Index, call: Call) -> None:
    before = LOCK.read_bytes(), LOCK.stat().st_mtime_ns
    asked = len(locked.log)
    said = call("lock", "--check", "--json")
    assert (said.status, json.loads(said.out)[0]["state"]) == (0, "unchanged")
    assert (LOCK.read_bytes(), LOCK.stat().st_mtime_ns) == before
    assert len(locked.log) == asked
    edited = replace(read_lock(LOCK), variables={**read_lock(LOCK).variables, "PYTHONHASHSEED": "random"})
    LOCK.write_text(edited.dump())
    said = call("lock", "--check")
    assert (said.status, "PYTHONHASHSEED is random, not 0" in said.err) == (0, True)
    assert call("lock", "--check", "--osv", "all.zip").status == 2
    LOCK.unlink()
    said = call("lock", "--check")
    assert (said.status, said.out) == (4, "")
    assert f"{LOCK}: no such file\n  hint: `reprobuild lock {REQUEST}` writes it" in said.err
    assert not LOCK.exists()


# --- Upgrades ---


@pytest.mark.parametrize(
    ("argv", "moved"),
    [
        (["lock"], set()),
        (["lock", "--upgrade"], {"filelock", "pip"}),
        (["lock", "--upgrade", "filelock"], {"filelock"}),
        (["lock", "--upgrade=filelock", "torch-cu121"], {"filelock"}),
        (["lock", "--upgrade", "filelock", "--upgrade", "pip", str(REQUEST)], {"filelock", "pip"}),
        (["lock", "--upgrade", str(REQUEST)], {"filelock", "pip"}),
        (["lock", "--upgrade", "torch-cu121"], {"filelock", "pip"}),
        (["lock", "--cuda", "12.1", "--upgrade"], {"filelock", "pip"}),
    ],
)
def test_pins_move_when_they_are_told_to(argv: list[str], moved: set[str], locked: Index, call: Call) -> None:
    locked.add("filelock", "1.2")
    locked.add("pip", "25.0")
    before = versions()
    [facts] = json.loads(call(*argv, "--json").out)
    assert set(facts["moved"]) == moved
    assert {name for name, version in versions().items() if before[name] != version} == moved


def test_what_is_not_locked_cannot_be_upgraded(locked: Index, call: Call) -> None:
    said = call("lock", "--upgrade", "nosuch")
    assert (said.status, said.out) == (5, "")
    assert "nosuch cannot be upgraded" in said.err


# --- Secrets ---


def test_no_secret_is_shown_or_kept(
    ready: Index, call: Call, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    ready.login = "someone:s3cret-word"
    monkeypatch.setenv("UV_DEFAULT_INDEX", ready.url_with_login)
    good = call("-v", "lock", "--cuda", "12.1")
    assert good.status == 0
    assert " run: " in good.err
    ready.login = "someone:other"
    bad = call("-v", "lock", "--cuda", "12.1", "--upgrade")
    assert bad.status == 5
    files = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    for text in (good.out, good.err, bad.out, bad.err, files):
        assert "s3cret" not in text


# --- render ---


def test_a_wheel_on_a_disk_is_said_before_anything_is_made(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPROBUILD_DEBIAN_MIRROR", "https://mirror.example/debian")
    monkeypatch.setenv("REPROBUILD_DEBIAN_SECURITY_MIRROR", "https://mirror.example/security")
    lock = read_lock(GOLDEN / "pylock.torch-cu121.toml")
    first = replace(lock.python[0], wheel=replace(lock.python[0].wheel, url="file:///srv/a.whl"))
    file = folder / "pylock.x.toml"
    file.write_text(replace(lock, python=[first, *lock.python[1:]]).dump())
    said = call("render", str(file), "-o", "out", "--self-contained")
    assert said.status == RenderError.exit_code
    assert "is a local file (file:///srv/a.whl)" in said.err
    assert not Path("out").exists()
