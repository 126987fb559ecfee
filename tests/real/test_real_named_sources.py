"""One image with packages of git repositories, of which one asks for a login, and of a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprobuild.errors import FetchError
from reprobuild.lock.model import Lock
from reprobuild.pipeline.workspace import read_lock
from support.artifacts import link_artifacts
from support.bench import Bench
from support.git_server import git_server, repository
from support.sdists import PYPROJECT, backend

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow

CODE = "import free, secret, ours; print(free.VALUE + secret.VALUE + ours.VALUE)"


def files(name: str) -> dict[str, str]:
    return {"pyproject.toml": PYPROJECT, "backend.py": backend(name, "1.0")}


def test_an_image_of_git_and_folders_is_tested_and_names_them(bench: Bench, tmp_path: Path) -> None:
    folder = bench.folder
    repository(folder / "libs/ours", files("ours"))
    (tmp_path / ".gitconfig").write_text("")
    with git_server(tmp_path / "open") as free, git_server(tmp_path / "closed") as closed:
        commits = [repository(each.root / n, files(n)) for each, n in ((free, "free"), (closed, "secret"))]
        closed.login = "ada:lovelace"
        netrc = tmp_path / ".netrc"
        netrc.write_text("machine 127.0.0.1 login ada password lovelace\n")
        netrc.chmod(0o600)
        text = (folder / "envs/torch-cpu.toml").read_text()
        named = [
            f"free @ git+{free.url}/free/.git@main",
            f"secret @ git+{closed.url}/secret/.git",
            "ours @ ../libs/ours",
        ]
        text = text.replace('name = "torch-cpu"', 'name = "named"')
        request = folder / "envs/named.toml"
        request.write_text(text.replace("packages = []", f"packages = {json.dumps(named)}"))
        home = {"HOME": str(tmp_path)}
        bench.run("lock", str(request), env=home)
        path = folder / "envs/pylock.named.toml"
        lock = read_lock(path)
        assert "lovelace" not in path.read_text()
        built = json.loads(bench.run("image", str(path), "--json", env=home)[0])
        assert bench.run("run", built["name"], "--", "python3", "-c", CODE)[0] == "3\n"
        (image,) = (each for each in bench.images() if each["digest"] == built["digest"])
        sources = {
            f"free @ git+{free.url}/free/.git@{commits[0]}",
            f"secret @ git+{closed.url}/secret/.git@{commits[1]}",
            "ours @ ../libs/ours",
        }
        assert set(image["labels"]["dev.reprobuild.sources"].split(", ")) == sources
        assert sources < set(bench.run("convert", str(path), "--to", "requirements")[0].splitlines())
        materials = json.loads(bench.run("convert", str(path), "--to", "cyclonedx")[0])
        urls = {r["url"] for c in materials["components"] for r in c.get("externalReferences", ())}
        assert {each.partition(" @ ")[2] for each in sources} <= urls
        inside = bench.run("run", built["name"], "--", "cat", "/opt/reprobuild/pylock.toml")[0]
        assert inside == path.read_text()
        bench.run("remove", built["name"])
        # Another machine, on which somebody has changed the folder.
        other = tmp_path / "other"
        link_artifacts(bench.home / "store", other / "store")
        _forget(other, lock)
        elsewhere = {**home, "REPROBUILD_HOME": str(other)}
        (folder / "libs/ours/backend.py").write_text(backend("ours", "1.0", more="print('changed')"))
        said = bench.run("image", str(path), env=elsewhere, status=FetchError.exit_code)[1]
        assert "ours: the files of ../libs/ours are not those that were locked" in said
        assert not list((other / "tmp").iterdir())


def _forget(home: Path, lock: Lock) -> None:
    """Take what was made of sources, and their trees, out of a home."""
    for package in lock.python:
        if package.source is not None:
            for sha256 in (package.source.sha256, package.wheel.sha256):
                next((home / "store").rglob(f"*{sha256}*")).unlink()
