"""Wheels → installed files, against what pip itself installs; and wheels that no one should trust."""

from __future__ import annotations

import ensurepip
import hashlib
import io
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import strategies as st
from packaging.utils import canonicalize_name, parse_wheel_filename

from reprobuild.errors import BuildError
from reprobuild.layers import wheel_zip
from reprobuild.layers.entry_points import script_template
from reprobuild.layers.wheel import Generated, Place, installed_files
from reprobuild.layers.wheel_zip import CHUNK, chunks, opened
from support.fuzz import for_long, quickly
from support.wheels import Item, odd_wheel, simple_wheel, toy_pip, wheel_bytes, write_wheel, zip_bytes

PLACE = Place(prefix="opt/venv", python="3.11")
SITE = "opt/venv/lib/python3.11/site-packages"
TEMPLATE = "import sys\nfrom %(module)s import %(import_name)s\nsys.exit(%(func)s())\n"

Tree = Mapping[str, tuple[int, bytes]]


def contents(
    wheel: Path, name: str, place: Place = PLACE, template: str = TEMPLATE, version: str = ""
) -> Tree:
    """Path → mode and bytes, as the layers will have them."""
    found = {}
    version = version or str(parse_wheel_filename(wheel.name)[1])
    with opened(wheel, name) as archive, wheel.open("rb") as file:
        for path, what in installed_files(archive, name, version, place, template).items():
            data = what.content if isinstance(what, Generated) else b"".join(chunks(file, what.info))
            found[path] = (what.mode, data)
    return found


def installed_by_pip(folder: Path, pip: Path, wheels: Sequence[Path]) -> Tree:
    """Install with a real pip as the Dockerfile does; path without leading slash → mode and bytes."""
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, umask=0o022)
    before = set(venv.rglob("*"))
    lines = []
    for wheel in wheels:
        name, version, _, _ = parse_wheel_filename(wheel.name)
        lines.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(sorted(lines)))
    finds = [word for parent in sorted({w.parent for w in wheels}) for word in ("--find-links", str(parent))]
    command = [
        *(str(venv / "bin/python"), f"{pip}/pip", "--isolated", "--no-input", "--no-cache-dir"),
        *("--disable-pip-version-check", "install", "--no-index", "--no-deps", "--no-compile"),
        *("--only-binary", ":all:", "--require-hashes", *finds, "--requirement", str(requirements)),
    ]
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    done = subprocess.run(command, check=False, umask=0o022, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    new = (path for path in venv.rglob("*") if path not in before and path.is_file())
    return {str(path).lstrip("/"): (path.stat().st_mode & 0o7777, path.read_bytes()) for path in new}


def bundled_pip() -> Path:
    """The pip that comes with this interpreter."""
    folders = (Path(ensurepip.__file__).parent / "_bundled", Path("/usr/share/python-wheels"))
    found = [path for folder in folders for path in folder.glob("pip-*.whl")]
    if not found:
        reason = "this Python has no pip of its own (ensurepip's wheel)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found[0]


def place_of(folder: Path) -> Place:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Place(prefix=str(folder / "venv").lstrip("/"), python=version)


def same(ours: Tree, pips: Tree) -> None:
    assert sorted(ours) == sorted(pips)
    for path, (mode, data) in ours.items():
        if path.endswith("/RECORD"):
            assert data.decode().split("\r\n") == pips[path][1].decode().split("\r\n"), path
        assert (path, oct(mode), data) == (path, oct(pips[path][0]), pips[path][1])


def ours(wheels: Sequence[Path], folder: Path, template: str) -> Tree:
    """The files of several wheels; of two at one path, that of the first by name."""
    found: dict[str, tuple[int, bytes]] = {}
    for wheel in sorted(wheels, key=lambda w: parse_wheel_filename(w.name)[0], reverse=True):
        name = parse_wheel_filename(wheel.name)[0]
        found |= contents(wheel, name, place_of(folder), template)
    return found


def test_a_wheel_with_every_oddity_is_installed_as_pip_does(tmp_path: Path) -> None:
    pip = bundled_pip()
    wheels = [
        write_wheel(tmp_path, "Odd.Name", "1.0", odd_wheel()),
        write_wheel(tmp_path, "alpha", "1", wheel_bytes("alpha", "1", {"shared/who.py": "WHO = 'alpha'\n"})),
        write_wheel(tmp_path, "beta", "1", wheel_bytes("beta", "1", {"shared/who.py": "WHO = 'beta'\n"})),
        write_wheel(tmp_path, "easy", "1", _easy_install()),
        pip,
    ]
    expected = installed_by_pip(tmp_path, pip, wheels)
    same(ours(wheels, tmp_path, script_template(pip)), expected)
    place = place_of(tmp_path)
    assert expected[f"{place.site}/shared/who.py"][1] == b"WHO = 'alpha'\n"
    assert {f"{place.prefix}/bin/{name}" for name in ("pip", "pip3", f"pip{place.python}")} < set(expected)


def _easy_install() -> bytes:
    points = "[console_scripts]\neasy_install = easy:main\neasy_install-2.7 = easy:main\npip7 = easy:main\n"
    return wheel_bytes("easy", "1", {"easy.py": "def main(): pass\n"}, entry_points=points)


@pytest.mark.slow
@pytest.mark.parametrize("pip", ["pip", "pip<25"])
def test_real_wheels_are_installed_as_pip_does(tmp_path: Path, pip: str) -> None:
    fetch = [sys.executable, f"{bundled_pip()}/pip", "--no-input", "download", "--no-deps", "--quiet"]
    fetch += ["--only-binary", ":all:", "--dest", str(tmp_path / "wheels")]
    subprocess.run([*fetch, pip, "numpy<2", "sympy", "tqdm"], check=True)
    wheels = sorted((tmp_path / "wheels").glob("*.whl"))
    assert len(wheels) == 4
    locked = next(wheel for wheel in wheels if wheel.name.startswith("pip-"))
    same(ours(wheels, tmp_path, script_template(locked)), installed_by_pip(tmp_path, locked, wheels))


def test_the_files_of_a_wheel_are_sorted_by_path(tmp_path: Path) -> None:
    with opened(write_wheel(tmp_path, "odd-name", "1.0", odd_wheel()), "odd-name") as archive:
        files = list(installed_files(archive, "odd-name", "1.0", PLACE, TEMPLATE))
    assert files == sorted(files)


def test_a_script_reads_as_the_locked_pip_writes_it(tmp_path: Path) -> None:
    template = script_template(write_wheel(tmp_path, "pip", "26.0", toy_pip()))
    wheel = write_wheel(tmp_path, "a", "1", _entry("go = a.b : C.run [x]"))
    assert contents(wheel, "a", template=template)["opt/venv/bin/go"] == (
        0o755,
        (
            b"#!/opt/venv/bin/python\nimport sys\nfrom a.b import C\n"
            b"if __name__ == '__main__':\n    sys.exit(C.run())\n"
        ),
    )


@pytest.mark.parametrize("form", ["{!r}", "clean({!r})", "textwrap.dedent({!r}).lstrip()"])
@pytest.mark.parametrize("name", ["script_template", "_TEMPLATE: str", "self.text"])
def test_a_pip_that_keeps_its_template_elsewhere(tmp_path: Path, name: str, form: str) -> None:
    text = "import sys\nfrom %(module)s import %(import_name)s\nsys.exit(%(func)s())\n"
    indented = "\n" + "".join(f"    {line}\n" for line in text.splitlines())
    source = f"HELP = 'of %(module)s'\ndef make(self):\n    {name} = {form.format(indented)}\n"
    files = {"pip/_internal/operations/install/wheel.py": source}
    assert script_template(write_wheel(tmp_path, "pip", "99", wheel_bytes("pip", "99", files))) == text


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"pip/_vendor/distlib/scripts.py": "OTHER = 1\n"},
        {"pip/_internal/operations/install/wheel.py": "script_template = make()\n"},
        {"pip/_internal/operations/install/wheel.py": "def (:\n"},
        {"pip/_internal/operations/install/wheel.py": 'T = "%(module)s %(import_name)s %(func)s"\n'},
        {"pip/_internal/operations/install/wheel.py": 'T = "%(module)s.%(import_name)s(%(func)s(%(new)s))"'},
    ],
)
def test_a_pip_without_a_template_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(BuildError, match="pip"):
        script_template(write_wheel(tmp_path, "pip", "99", wheel_bytes("pip", "99", files)))


def _entry(line: str, group: str = "console_scripts") -> bytes:
    return wheel_bytes("a", "1", {"a.py": ""}, entry_points=f"[{group}]\n{line}\n")


@pytest.mark.parametrize(
    "path",
    [
        *("../evil.py", "a/../../evil.py", "/etc/evil", "a//b.py", "./a.py", "a\\b.py", "a/..", "tab\there"),
        *("a.data/scripts", "a.data/other/x", "a.data/data/../../x", "a.data/scripts/../x", "new\nline.py"),
        *("a.data", "a.data/data", "vertical\x0btab.py", "form\x0cfeed.py", "next\x85line.py"),
        *("line\u2028separator.py", "paragraph\u2029separator.py", "escape\x1b[2J.py", "n" * 256),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    wheel = write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {path: "x"}))
    with pytest.raises(BuildError, match="a: the wheel"):
        contents(wheel, "a")


def test_a_zero_in_a_name_ends_it(tmp_path: Path) -> None:
    # zipfile cuts the name there, on reading as on writing; no such byte comes through.
    data = wheel_bytes("a", "1", {"okX/../../../x": "x"}).replace(b"okX", b"ok\0")
    assert all("\0" not in path for path in contents(write_wheel(tmp_path, "a", "1", data), "a"))


@pytest.mark.parametrize("group", ["console_scripts", "gui_scripts"])
@pytest.mark.parametrize(
    "line",
    [
        *("../../usr/bin/ls = a:main", "/bin/ls = a:main", ". = a:main", " = a:main", "x = a", "x = :main"),
        *("x = a:main; import os", "x = a b:main", "x = a:", "x/y = a:main", "x y = a:main"),
    ],
)
def test_a_hostile_entry_point_is_refused(tmp_path: Path, line: str, group: str) -> None:
    with pytest.raises(BuildError, match="a: the"):
        contents(write_wheel(tmp_path, "a", "1", _entry(line, group)), "a")


def test_a_wheel_needs_one_dist_info_with_a_record(tmp_path: Path) -> None:
    two = wheel_bytes("a", "1", {"b-1.dist-info/METADATA": "x"})
    with pytest.raises(BuildError, match=r"2 \.dist-info"):
        contents(write_wheel(tmp_path, "a", "1", two), "a")
    with pytest.raises(BuildError, match=r"0 \.dist-info"):
        contents(write_wheel(tmp_path, "a", "1", zip_bytes({"a.py": Item()})), "a")
    with pytest.raises(BuildError, match="no RECORD"):
        contents(write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {}, record="")), "a")


@pytest.mark.parametrize(
    "data",
    [b"", b"no zip at all" * 9, simple_wheel("a")[:-30], simple_wheel("a")[:200], b"PK\5\6" + bytes(18)],
    ids=["empty", "text", "cut at the end", "cut early", "no member"],
)
def test_what_is_no_wheel_is_a_build_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BuildError, match=r"^a: "):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def test_a_record_that_is_no_text_is_a_build_error(tmp_path: Path) -> None:
    data = wheel_bytes("a", "1", {}, record="", info={"RECORD": b"\xff\xfe,,\n"})
    with pytest.raises(BuildError, match=r"^a: its wheel cannot be read"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def member(data: bytes, name: str = "a/x.bin") -> tuple[io.BytesIO, zipfile.ZipInfo]:
    return io.BytesIO(data), zipfile.ZipFile(io.BytesIO(data)).getinfo(name)


@pytest.mark.parametrize("compress", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("content", [b"", b"x", bytes(5 * CHUNK + 3), os.urandom(2 * CHUNK)], ids=len)
def test_chunks_give_a_member_s_bytes(content: bytes, compress: int) -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=content, compress=compress)}))
    found = list(chunks(file, info))
    assert b"".join(found) == content
    assert all(len(chunk) <= 4 * CHUNK for chunk in found)


@pytest.mark.parametrize("compress", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("where", [0, 14, 60, 300, 1000])
def test_chunks_detect_damage(compress: int, where: int) -> None:
    content = bytes(range(256)) * 4 + os.urandom(1024)
    data = bytearray(zip_bytes({"a/x.bin": Item(content=content, compress=compress)}))
    file, info = member(bytes(data))
    start = 0 if where == 0 else 30 + len("a/x.bin") + where
    data[start] ^= 0x55
    with pytest.raises(BuildError, match="damaged"):
        list(chunks(io.BytesIO(data), info))
    with pytest.raises(BuildError, match="damaged"):
        list(chunks(io.BytesIO(file.getvalue()[: start + 10]), info))


@pytest.mark.parametrize("lie", [-1, 1, 1 << 30])
def test_a_member_of_another_size_than_it_says_is_refused(lie: int) -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=bytes(1000))}))
    info.file_size += lie
    with pytest.raises(BuildError, match="damaged"):
        list(chunks(file, info))


def test_a_bomb_ends_at_the_size_it_says() -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=bytes(48 << 20))}))
    info.file_size = 1000
    given: list[bytes] = []
    with pytest.raises(BuildError, match="damaged"):
        given.extend(chunks(file, info))
    assert sum(map(len, given)) <= 1000


@pytest.mark.parametrize("compress", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_rare_compression_is_refused_by_name(compress: int) -> None:
    file, info = member(zip_bytes({"a/x.bin": Item(content=b"x" * 99, compress=compress)}))
    with pytest.raises(BuildError, match="compresses"):
        list(chunks(file, info))


ODD = odd_wheel()


def whatever_is_wrong_is_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(ODD)
    for place, mask in changes:
        # Two thirds of them in the directory at the end, where most of the meaning is.
        data[place if place % 3 == 0 else len(data) - 1 - place % 4000] ^= mask
    wheel = write_wheel(tmp_path_factory.mktemp("wheel"), "odd-name", "1.0", bytes(data))
    try:
        found = contents(wheel, "odd-name")
    except BuildError:
        return
    assert all(path.startswith("opt/venv/") and ".." not in path.split("/") for path in found)


CHANGES = st.lists(st.tuples(st.integers(0, len(ODD) - 1), st.integers(1, 255)), min_size=1, max_size=4)
test_whatever_is_wrong_is_a_build_error = quickly(changes=CHANGES)(whatever_is_wrong_is_refused)
test_whatever_is_wrong_for_long = for_long(changes=CHANGES)(whatever_is_wrong_is_refused)


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    data = bytearray(simple_wheel("a"))
    central = data.index(b"PK\1\2", data.index(b"RECORD"))
    for start in [i for i in range(central, len(data)) if data[i : i + 4] == b"PK\1\2"]:
        (flags,) = struct.unpack_from("<H", data, start + 8)
        struct.pack_into("<H", data, start + 8, flags | 1)
    with pytest.raises(BuildError, match=r"^a: its wheel cannot be read"):
        contents(write_wheel(tmp_path, "a", "1", bytes(data)), "a")


def test_the_name_of_a_wheel_is_normalised() -> None:
    assert canonicalize_name("Odd.Name") == "odd-name"


INFO = "a-1.dist-info"
REFUSED_BY_PIP: dict[str, tuple[str, dict[str, Item]]] = {
    "a folder of another package": (
        r"the folder 'b-1\.dist-info', of another package",
        {
            "b-1.dist-info/METADATA": Item(content=b"Name: a\nVersion: 1\n"),
            "b-1.dist-info/WHEEL": Item(content=b"Wheel-Version: 1.0\n"),
            "b-1.dist-info/RECORD": Item(),
        },
    ),
    "another package": (
        r"says that it is 'b' '1', and the lock has it as a 1",
        {f"{INFO}/METADATA": Item(content=b"Name: b\nVersion: 1\n")},
    ),
    "another version": (
        r"says that it is 'a' '2', and the lock has it as a 1",
        {f"{INFO}/METADATA": Item(content=b"Name: a\nVersion: 2\n")},
    ),
    "no version": (r"says that it is 'a' ''", {f"{INFO}/METADATA": Item(content=b"Name: a\n")}),
    "a form yet to come": (
        r"has the Wheel-Version '99\.0'; only 1 is known",
        {f"{INFO}/WHEEL": Item(content=b"Wheel-Version: 99.0\n")},
    ),
    "no form": (r"has the Wheel-Version 'none'", {f"{INFO}/WHEEL": Item(content=b"Tag: py3-none-any\n")}),
}


@pytest.mark.parametrize("what", REFUSED_BY_PIP)
def test_what_pip_refuses_is_refused_by_name(tmp_path: Path, what: str) -> None:
    message, members = REFUSED_BY_PIP[what]
    usual = {
        f"{INFO}/METADATA": Item(content=b"Metadata-Version: 2.1\nName: a\nVersion: 1\n"),
        f"{INFO}/WHEEL": Item(content=b"Wheel-Version: 1.0\n"),
        f"{INFO}/RECORD": Item(),
    }
    data = zip_bytes(members if any("b-1" in path for path in members) else {**usual, **members})
    with pytest.raises(BuildError, match=f"^a: the wheel.*{message}"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


@pytest.mark.parametrize("file", ["WHEEL", "METADATA"])
def test_a_wheel_without_its_documents_is_refused(tmp_path: Path, file: str) -> None:
    members = {name: Item() for name in ("METADATA", "WHEEL", "RECORD") if name != file}
    members |= {"WHEEL": Item(content=b"Wheel-Version: 1.0\n")} if file != "WHEEL" else {}
    data = zip_bytes({f"{INFO}/{name}": item for name, item in members.items()})
    with pytest.raises(BuildError, match=f"a: the wheel has no {file}"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    data = bytearray(wheel_bytes("a", "1", {"a/one.py": "X = 1\n", "a/two.py": "X = 2\n"}))
    with pytest.raises(BuildError, match=r"a: its wheel cannot be read: it has 'a/one\.py' more than once"):
        contents(write_wheel(tmp_path, "a", "1", bytes(data.replace(b"a/two.py", b"a/one.py"))), "a")


def test_a_member_with_two_names_is_refused(tmp_path: Path) -> None:
    """A reader of the directory sees one, a reader of the stream the other."""
    data = wheel_bytes("a", "1", {"a/one.py": "X = 1\n"}).replace(b"a/one.py", b"a/two.py", 1)
    with pytest.raises(BuildError, match=r"'a/one\.py' has another name beside its data"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def test_members_that_share_their_data_are_refused(tmp_path: Path) -> None:
    """So ten megabytes unpack to 281 terabytes."""
    data = bytearray(zip_bytes({"a/one": Item(content=bytes(1 << 20)), "a/two": Item(content=b"x")}))
    first, second = (m.start() for m in re.finditer(b"PK\x01\x02", bytes(data)))
    struct.pack_into("<I", data, first + 20, second)  # the compressed size: on, over the next member
    with pytest.raises(BuildError, match="the data of 'a/one' overlaps that of another member"):
        contents(write_wheel(tmp_path, "a", "1", bytes(data)), "a")


@pytest.mark.parametrize(("name", "least"), [("MOST_BYTES", 100), ("MOST_MEMBERS", 2)])
def test_a_wheel_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, least: int
) -> None:
    monkeypatch.setattr(wheel_zip, name, least)
    with pytest.raises(BuildError, match=f"more than {least} "):
        contents(write_wheel(tmp_path, "a", "1", simple_wheel("a", "1")), "a")


@pytest.mark.parametrize(
    "path",
    [
        *("reprobuild_hook.py", "reprobuild_hook/__init__.py", "reprobuild.pth", "reprobuild_hook.so"),
        *("reprobuild_hook.cpython-311-x86_64-linux-gnu.so", "__pycache__/reprobuild_hook.cpython-311.pyc"),
        *("a.data/purelib/reprobuild_hook.py", "a.data/data/lib/python3.11/site-packages/reprobuild_hook.py"),
        *("sitecustomize.py", "usercustomize/__init__.py", "__pycache__/sitecustomize.cpython-311.pyc"),
    ],
)
def test_a_name_of_reprobuild_s_own_is_refused(tmp_path: Path, path: str) -> None:
    wheel = write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {path: "x"}))
    with pytest.raises(BuildError, match=r"a: has the file '/opt/venv/.*', a name that "):
        contents(wheel, "a")


@pytest.mark.parametrize(
    "path",
    [
        *(
            "a.data/scripts/python",
            "a.data/scripts/python3",
            "a.data/scripts/python3.11",
            "a.data/data/bin/python3",
        ),
        *("a.data/data/pyvenv.cfg", "a.data/data/pyvenv.cfg/x", "a.data/data/bin/python/x"),
    ],
)
def test_the_environment_s_interpreter_is_no_wheel_s_to_replace(tmp_path: Path, path: str) -> None:
    """pip installs it, and from then on every program runs on what the wheel brought."""
    data = wheel_bytes("a", "1", {path.replace("a.data", "a-1.data"): "x"})
    with pytest.raises(BuildError, match=r"a: has the file '/opt/venv/.*', which is the environment's own"):
        contents(write_wheel(tmp_path, "a", "1", data), "a")


def test_an_entry_point_is_not_called_python(tmp_path: Path) -> None:
    info = {"entry_points.txt": "[console_scripts]\npython3 = a:main\n"}
    with pytest.raises(BuildError, match=r"a: has the file '/opt/venv/bin/python3', which is"):
        contents(write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {}, info=info)), "a")


@pytest.mark.parametrize("script", ["../../x", "a/b", "/etc/x", "..", "a\nb", "a b"])
def test_an_entry_point_leads_nowhere(tmp_path: Path, script: str) -> None:
    info = {"entry_points.txt": f"[console_scripts]\n{script} = a:main\n"}
    with pytest.raises(BuildError):
        contents(write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {}, info=info)), "a")


@pytest.mark.parametrize("path", ["a/sitecustomize.py", "a/my_reprobuild_hook.py", "reprobuild_hooks.py"])
def test_a_name_that_is_only_alike_is_taken(tmp_path: Path, path: str) -> None:
    wheel = write_wheel(tmp_path, "a", "1", wheel_bytes("a", "1", {path: "x"}))
    assert f"{SITE}/{path}" in contents(wheel, "a")
