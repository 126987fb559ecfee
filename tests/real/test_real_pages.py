"""The commands of README and the pages, run as they stand there, in the order in which they stand there.

What is replaced are the names of a page's examples (`Team.said`), and the CUDA image is the CPU's. Every line
runs here, or `ELSEWHERE` says where it does.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.pipeline.workspace import read_lock
from support.artifacts import fetch_once
from support.bench import NAME, TORCH, Bench, until
from support.built import build_once
from support.index import serve_index
from support.registry import serve_registry

TOP = Path(__file__).resolve().parents[2]
PAGES = sorted(
    (page for page in (TOP / "README.md", *(TOP / "docs").glob("*.md")) if "```sh\n" in page.read_text()),
    key=lambda page: (page.stem == "commands", page),
)
"""That of the commands comes last: it removes the image."""

ELSEWHERE: Mapping[str, str] = {
    r".*python3 -m venv \.venv.*": ".ci/bare-root, in a Debian without anything else",
    r".*docker build.*|.*podman build.*": "tests/engines",
    r".*docker:team/.*|.* --(engine|into) .*": "tests/engines/test_engines_contract.py",
    r"tar --occurrence.*|/opt/reprobuild/.*": "tests/real/test_real_bundle.py: `bundle --check` does both",
    r"pip install --index-url.*|uv pip install.*|echo .deb .*": "tests/bundle/test_bundle_mirror.py",
    r".*--bundle team.bundle.tar frames|.*bundle --check .*": "tests/real/test_real_bundle.py",
    r".* --gpu require": "a machine with a GPU",
    r".* --slurm=gpu .*": "tests/selftest/test_selftest_slurm.py",
    r"kubectl .*|sh fleet/.*": "tests/render/test_render_kubernetes.py, without a cluster",
    r".*--record-kernels .*": "tests/in_image/test_in_image_kernels.py",
    r"reprobuild lock --from (environment|uv)\..*|.*--from uv\.lock.*|.*--extra train.*": "tests/imports",
    r"reprobuild replay figure3\.json": "tests/cli/test_cli_replay.py: it asks a person",
    r".* jupyter lab .*": "`test_jupyterlab_answers`",
    r"git add .*": "a step between two commands",
    r"python /opt/reprobuild/selftest\.py .*": "tests/in_image/test_selftest_program.py",
}
"""A line of a page → what runs it in place of this module."""

pytestmark = pytest.mark.slow

TRAIN = """
import argparse, os, torch
asked = argparse.ArgumentParser()
asked.add_argument("--steps", type=int, default=60)
asked.add_argument("--epochs", type=int)
asked.add_argument("--resume")
asked = asked.parse_args()
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
step = 0
if asked.resume or os.path.exists("last.pt"):
    step, kept, state = torch.load(asked.resume or "last.pt")
    model.load_state_dict(kept)
    optimizer.load_state_dict(state)
data = torch.arange(8.0).reshape(4, 2)
while step < (60 if asked.resume else asked.steps):
    optimizer.zero_grad()
    loss = model(data).pow(2).mean()
    loss.backward()
    optimizer.step()
    step += 1
    torch.save((step, model.state_dict(), optimizer.state_dict()), "last.pt")
print(model(data).pow(2).mean().item())
"""
PREDICT = """
import torch
torch.manual_seed(0)
model = torch.nn.PReLU(64)
with torch.no_grad():
    print(model(torch.randn(16, 64)).sum().item())
"""


def lines(page: Path) -> list[str]:
    """The lines of a page's shell snippets."""
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()]


def elsewhere(line: str) -> str | None:
    """Say what runs a line in place of this module."""
    command = re.sub(r" +#.*", "", line)
    return next((where for pattern, where in ELSEWHERE.items() if re.fullmatch(pattern, command)), None)


class Team:
    """A folder for each page, with what the page takes for granted; images, and a registry."""

    def __init__(self, bench: Bench, host: str, digest: str) -> None:
        self.folder = bench.folder / "team"
        self.env = {
            **bench.env,
            "HOME": str(bench.folder),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "REPROBUILD_GPU": "off",
        }
        self.host = host
        self.names = {
            "registry.example": host,
            "sha256:DIGEST": digest,
            "--cuda 12.1": f"--cuda cpu --torch {TORCH}",
            " --index pytorch": "",  # which not every machine reaches: test_real_cli_pytorch.py
            "reprobuild/torch:2.4.1-cu121-py311": NAME,
            "torch-cu121": "torch-cpu",
            "/srv/mirror": "mirror",
        }
        self.ran: set[str] = set()
        """Lines that ran already, which other pages have too."""

    def said(self, line: str) -> str:
        for name, ours in self.names.items():
            line = line.replace(name, ours)
        return line

    def start(self, line: str, folder: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", self.said(line)],
            cwd=folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fault(self, line: str, folder: Path) -> str:
        """Run a line; return what it wrote if it failed."""
        with self.start(line, folder) as process:
            out, err = process.communicate()
        self.ran.add(line)
        bad = process.returncode != 0 or "Traceback (most" in err
        return f"{self.said(line)}: {process.returncode}\n{out}\n{err}\n" if bad else ""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("pages")
    with serve_index() as index, serve_registry(folder / "registry") as host:
        bench = Bench(folder, index.url)
        bench.lock_torch()
        fetch_once(read_lock(folder / bench.lock), Store(Home(bench.home)), tmp_path_factory)
        try:
            team = Team(bench, host, build_once(bench, tmp_path_factory))
            _set_up(team)
            yield team
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _set_up(team: Team) -> None:
    folder = team.folder
    shutil.copytree(folder.parent / "envs", folder / "envs")
    (folder.parent / ".local/share/bash-completion/completions").mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    (folder / "predict.py").write_text(PREDICT)
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(TRAIN)
    (folder / "requirements.txt").write_text(f"torch=={TORCH}\n")
    (folder / "policy.toml").write_text('keys = ["team.pub"]\nchecks = ["conv2d"]\n')
    with zipfile.ZipFile(folder / "all.zip", "w") as advisories:
        advisory = '{"id": "PYSEC-1", "modified": "2026-01-01T00:00:00Z", "affected": []}'
        advisories.writestr("PYSEC-1.json", advisory)
    quick = [line for line in lines(TOP / "README.md") if "--name frames" in line]
    record = f"twice --record golden.repeat -v $PWD:/work -w /work {NAME} -- python3 train.py --steps 20"
    for line in (
        *lines(TOP / "docs/evidence.md")[:2],
        "cp team.pem me.pem && cp team.pem audit.pem",
        *quick,
        "cp envs/pylock.torch-cpu.toml old.toml",
        "git init -q && git add envs && git -c user.name=a -c user.email=a@b.example commit -qm locks",
        "reprobuild image frames --tag team/frames:1",
        "reprobuild push team/frames:1 registry.example/team/frames:1 --record-layers",
        f"reprobuild push {NAME} registry.example/team/torch:2.4.1 --sign-key team.pem",
        f"reprobuild push {NAME} registry.example/team/torch:1 --sign-key team.pem",
        f"reprobuild export {NAME} torch.tar",
        f"reprobuild {record}",
        *(line for line in lines(TOP / "docs/receipts.md") if "--receipt" in line),
        f"rm last.pt && reprobuild selftest {NAME} --json > a100.json && cp a100.json h100.json",
    ):
        assert not team.fault(line, folder)


@pytest.fixture
def place(team: Team, tmp_path: Path) -> Path:
    """A folder as the team's is."""
    return shutil.copytree(team.folder, tmp_path / "work", copy_function=_copy)


def _copy(source: str, target: str) -> None:
    """Copy a file; of an archive it is enough that it has another name."""
    if source.endswith(".tar"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_runs(team: Team, place: Path, page: Path) -> None:
    match page.stem:
        case "coming-from":
            shutil.rmtree(place / "envs")
        case "self-test":  # whose reports are all the *.json
            (place / "figure3.json").unlink()
        case "editors":  # whose image is pushed in another form than that of other pages
            team.names["registry.example"] = f"{team.host}/editors"
    mine = [line for line in lines(page) if line and elsewhere(line) is None]
    folder, faults = place, ""
    for line in mine:
        if line.startswith("cd "):
            folder = place / line.removeprefix("cd ")
        elif line not in team.ran:
            faults += team.fault(line, folder)
    if faults:
        pytest.fail(faults)


def test_jupyterlab_answers(team: Team, place: Path) -> None:
    found = [line for line in lines(TOP / "docs/editors.md") if "lab" in line]
    *before, serve = found
    for line in before:
        assert line in team.ran or not team.fault(line, place)
    with team.start(f"exec {serve}", place) as process:
        try:
            assert process.stderr is not None
            address = next(
                at[0] for line in process.stderr if (at := re.search(r"http://127\.0\.0\.1:\S+", line))
            )
            until(lambda: _answers(address), process)
            assert "JupyterLab" in requests.get(address, timeout=60).text
        finally:
            process.terminate()


def _answers(address: str) -> bool:
    """Say whether somebody listens at an address, which Jupyter prints before it does."""
    where = urlsplit(address)
    with socket.socket() as probe:
        return probe.connect_ex((where.hostname, where.port)) == 0


def test_what_runs_elsewhere_is_in_a_page() -> None:
    every = [line for page in PAGES for line in lines(page)]
    for pattern, where in ELSEWHERE.items():
        assert not where.startswith("tests/") or (TOP / re.split(r"[:,]", where)[0]).exists(), where
        assert [line for line in every if re.fullmatch(pattern, re.sub(r" +#.*", "", line))], pattern
