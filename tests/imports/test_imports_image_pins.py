"""What an image has, read from its files: no Python of the image is asked."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from reprobuild.errors import ImageError, RequestError
from reprobuild.imports.image_pins import is_kept, read_image
from reprobuild.oci.file_tree import ImageTree, read_root
from support.images import Entry, layer
from support.wheels import simple_wheel, write_wheel

LINK = tarfile.SYMTYPE
CONFIG = {"Env": ["PATH=/opt/venv/bin:/usr/bin"], "Cmd": ["python3"]}


def info(folder: str, name: str, version: str, kind: str = "dist-info/METADATA") -> Entry:
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nVersion: of the text\n"
    return Entry(path=f"{folder}/{name}-{version}.{kind}", content=text.encode())


def image(*entries: Entry | str, env: Sequence[str] = (), user: str = "") -> ImageTree:
    """An image with Debian's Python 3.11, and more files."""
    debian: list[Entry | str] = [
        Entry(path="usr/bin/python3", kind=LINK, target="python3.11"),
        "usr/bin/python3.11",
    ]
    config = {**CONFIG, "Env": [*CONFIG["Env"], *env], "User": user}
    tar = io.BytesIO(layer(*debian, *entries))
    return read_root(tar, "x", config, keep=is_kept)


VENV = (
    Entry(path="opt/venv/bin/python3", kind=LINK, target="/usr/bin/python3"),
    Entry(path="opt/venv/pyvenv.cfg", content=b"home = /usr/bin\ninclude-system-site-packages = false\n"),
)
SITE = "opt/venv/lib/python3.11/site-packages"
DEBIAN = "usr/lib/python3/dist-packages"


def packages(tree: ImageTree) -> list[str]:
    return [str(each) for each in read_image(tree, "x").requirements]


def test_the_packages_of_an_image_s_virtual_environment() -> None:
    version = Entry(path=f"{SITE}/torch/version.py", content=b"debug = False\ncuda: Optional[str] = '12.1'\n")
    files = (
        *VENV,
        version,
        info(SITE, "torch", "2.4.1"),
        info(SITE, "Odd.Name", "1"),
        info(DEBIAN, "apt", "2"),
    )
    imported = read_image(image(*files), "registry.example:5000/team/frames:1")
    assert (imported.name, imported.cuda, imported.python) == ("frames", "12.1", "3.11")
    assert imported.requirements == (Requirement("Odd.Name==1"), Requirement("torch==2.4.1"))
    direct = Entry(path=f"{SITE}/Odd.Name-1.dist-info/direct_url.json", content=b"{}")
    with pytest.raises(RequestError, match=r"not from an index: Odd\.Name 1"):
        read_image(image(*files, direct), "x")


def test_where_else_a_python_finds_packages() -> None:
    shared = Entry(path="opt/venv/pyvenv.cfg", content=b"include-system-site-packages = True\n")
    own = (VENV[0], shared, info(SITE, "a", "1"), info(DEBIAN, "a", "2"), info(DEBIAN, "b", "1"))
    assert packages(image(*own)) == ["a==1", "b==1"]
    old = info(DEBIAN, "egg", "1", "egg-info/PKG-INFO"), info(DEBIAN, "file", "1", "egg-info")
    local = info("usr/local/lib/python3.11/dist-packages", "b", "3")
    other = info("usr/lib/python3.12/site-packages", "no", "1")
    assert packages(image(info(DEBIAN, "b", "1"), *old, local, other)) == ["b==3", "egg==1", "file==1"]
    user = info("root/.local/lib/python3.11/site-packages", "b", "4")
    assert packages(image(local, user)) == ["b==4"]
    assert packages(image(local, user, user="1000:1000")) == ["b==3"]
    assert packages(image(local, info("app/lib", "b", "5"), env=["PYTHONPATH=/app/lib:"])) == ["b==5"]
    added = Entry(path=f"{DEBIAN}/more.pth", content=b"# no\nimport no\n../../../opt/more\r\n/none\n")
    assert packages(image(added, info("usr/opt/more", "c", "1"))) == ["c==1"]


def test_a_python_with_a_prefix_of_its_own() -> None:
    conda = "opt/conda/lib/python3.12"
    files: list[Entry | str] = [
        "opt/conda/bin/python3.12",
        Entry(path="opt/venv/bin", kind=LINK, target="../conda/bin"),
    ]
    files += [Entry(path="opt/conda/bin/python3", kind=LINK, target="python3.12")]
    found = read_image(image(*files, info(f"{conda}/site-packages", "a", "1")), "x")
    assert (found.python, *map(str, found.requirements)) == ("3.12", "a==1")
    # Its name need not say which it is.
    named = ["opt/venv/bin/python3", "opt/venv/lib/python3.10/os.py"]
    found = read_image(image(*named, info("opt/venv/lib/python3.10/site-packages", "a", "1")), "x")
    assert (found.python, *map(str, found.requirements)) == ("3.10", "a==1")


def test_an_image_without_a_python_that_can_be_told() -> None:
    with pytest.raises(ImageError, match="x: /opt/venv/bin/python3 does not say which Python it is"):
        read_image(image("opt/venv/bin/python3"), "x")
    loop = Entry(path="usr/bin/python3", kind=LINK, target="python3")
    with pytest.raises(ImageError, match="x: no python3 is on its PATH"):
        read_image(image(loop), "x")
    with pytest.raises(ImageError, match="a b! is not a package name and version"):
        read_image(image(info(DEBIAN, "a", "b!")), "x")


def test_it_is_what_python_itself_finds(tmp_path: Path) -> None:
    """Of a real virtual environment with a package that was really installed."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    wheel = write_wheel(tmp_path, "humanise", "1.0", simple_wheel("humanise"))
    install = ["-m", "pip", "--python", str(venv / "bin/python"), "install", "--no-index", "-q", "humanise"]
    subprocess.run([sys.executable, *install, "--find-links", str(wheel.parent)], check=True)
    real = Path(sys.executable).resolve()
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as out:
        out.add(venv, arcname=str(venv))
        out.addfile(tarfile.TarInfo(str(real)))
        for hop in (Path(sys.executable), *Path(sys.executable).parents):
            if hop.is_symlink():
                out.add(hop, recursive=False)
    tar.seek(0)
    tree = read_root(tar, "x", {"Env": [f"PATH={venv}/bin"]}, keep=is_kept)
    found = read_image(tree, "x")
    asked = "import importlib.metadata as m, sys\nprint(*sys.version_info[:2], sep='.')\n"
    asked += "[print(f'{d.metadata[\"Name\"]}=={d.version}') for d in m.distributions()]"
    said = subprocess.run(
        [venv / "bin/python", "-I", "-c", asked], capture_output=True, text=True, check=True
    )
    assert [found.python, *map(str, found.requirements)] == said.stdout.split()
