from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement

from reprobuild.lock.reader import parse_lock
from reprobuild.render import own_files
from reprobuild.render.program import selftest_program
from support.locks import LOCK

SOURCE = Path(own_files.__file__).parents[1] / "in_image"


def test_each_file_is_there_with_its_bytes_and_mode() -> None:
    files = own_files.image_files(LOCK)
    assert list(files) == [
        "/opt/reprobuild/constraints.txt",
        "/opt/reprobuild/golden.json",
        "/opt/reprobuild/kernels.py",
        "/opt/reprobuild/pylock.toml",
        "/opt/reprobuild/selftest.py",
        "/opt/venv/lib/python3.11/site-packages/reprobuild.pth",
        "/opt/venv/lib/python3.11/site-packages/reprobuild_hook.py",
    ]
    assert {mode for _, mode in files.values()} == {0o644}
    assert files["/opt/reprobuild/selftest.py"][0] == selftest_program()
    for path in (*list(files)[1:3], *list(files)[5:]):
        assert files[path][0] == (SOURCE / path.rpartition("/")[2]).read_bytes()
    assert parse_lock(files["/opt/reprobuild/pylock.toml"][0].decode(), "image") == LOCK


def test_every_file_of_in_image_has_its_place() -> None:
    known = {*own_files.OWN_FILES, *own_files.SITE_FILES, *own_files.BUILD_FILES}
    # init.py is given to an image's Python as text.
    known |= {own_files.ROOT_FILE, "init.py", "__init__.py"}
    assert {path.name for path in SOURCE.iterdir() if path.suffix in (".py", ".pth", ".json")} == known


def test_the_environment_s_python_decides_the_folder() -> None:
    other = replace(LOCK, request=replace(LOCK.request, python="3.13"))
    assert own_files.site_packages(other) == "/opt/venv/lib/python3.13/site-packages"


def test_constraints_are_every_package_but_pip_and_say_whom_to_ask() -> None:
    lines = own_files.constraints(LOCK).splitlines()
    comments = [line for line in lines if line.startswith("#")]
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    assert {(r.name, str(r.specifier)) for r in found} == {
        (p.name, f"=={p.version}") for p in LOCK.python if p.name != "pip"
    }
    assert "envs/torch-cu121.toml" in "\n".join(comments)
    assert "reprobuild lock" in "\n".join(comments)
