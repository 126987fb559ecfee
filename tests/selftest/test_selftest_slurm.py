"""A job array of a real Slurm: each node's reports, and what is said of nodes that give none."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprobuild.errors import HostError
from reprobuild.host.console import Console
from reprobuild.host.process import Completed
from reprobuild.selftest import slurm as slurm_module
from reprobuild.selftest.fleet import fleet
from reprobuild.selftest.slurm import Cluster, Gathered, drain, run_on_nodes
from support import slurm
from support.bench import NAME, Bench
from support.reports import a_check, a_report

pytest_plugins = ["support.shared"]

CONSOLE = Console(quiet=True)


def test_the_command_that_drains_a_node() -> None:
    assert drain("n2", "conv2d deviates") == (
        "scontrol update NodeName=n2 State=DRAIN 'Reason=reprobuild: conv2d deviates'"
    )


def test_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("reprobuild.host.process.which", lambda _: None)
    with pytest.raises(HostError, match="sinfo is not installed") as caught:
        run_on_nodes(["true"], tmp_path, CONSOLE, Cluster())
    assert "slurm-client" in caught.value.hint


# --- with a real one ---


@pytest.fixture(scope="module")
def real() -> Iterator[slurm.Cluster]:
    with slurm.slurm(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(real: slurm.Cluster, monkeypatch: pytest.MonkeyPatch) -> slurm.Cluster:
    for name, value in real.env.items():
        monkeypatch.setenv(name, value)
    return real


NAMED = "re ports 50%j a\\b $(touch ran) 'it\"s'\n#SBATCH --wait"
"""A folder's name; sbatch(1) expands % in the names of files, and reads lines that begin with #SBATCH."""


def printing(folder: Path, **others: str) -> list[str]:
    """Return a command that prints a report, and on some nodes something else, or does something else."""
    for name in ("n1", "n2", "n3"):
        script = others.get(name, f"cat {folder}/report")
        (folder / f"{name}.sh").write_text(f"{script}\n")
    (folder / "report").write_text(json.dumps(a_report()))
    return ["sh", "-c", f"exec sh {folder}/$SLURMD_NODENAME.sh"]


def run(tmp_path: Path, command: list[str], where: Cluster | None = None) -> Gathered:
    folder = tmp_path / NAMED
    folder.mkdir()
    return run_on_nodes(command, folder, CONSOLE, where or Cluster(minutes=5))


@pytest.mark.engines
def test_a_node_that_deviates_and_one_that_fails(cluster: slurm.Cluster, tmp_path: Path) -> None:
    """Each runs alone, and twice at once; a status of 9 is a report too."""
    other = a_check(results={"output": "e" * 64})
    (tmp_path / "other").write_text(json.dumps(a_report(other)))
    command = printing(tmp_path, n2=f"cat {tmp_path}/other; exit 9", n3="echo no GPU here >&2; exit 7")
    found = run(tmp_path, command)
    assert [machine.name for machine in found.machines] == [
        *("n1", "n1 busy 1", "n1 busy 2", "n2", "n2 busy 1", "n2 busy 2")
    ]
    assert [(each.node, "no GPU here" in each.reason) for each in found.silent] == [("n3", True)]
    assert {found.node_of(each.machine) for each in fleet(found.machines).deviations} >= {"n2"}
    assert {f"{number}.log" for number in range(3)} < {path.name for path in (tmp_path / NAMED).iterdir()}
    assert cluster.call("squeue", "--noheader") == ""


@pytest.mark.engines
def test_a_scheduler_that_refuses(cluster: slurm.Cluster, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"Slurm refused: sbatch: .*time limit"):
        run(tmp_path, printing(tmp_path), Cluster("short", 5))
    with pytest.raises(HostError, match="no node of the partition nowhere is ready"):
        run_on_nodes(printing(tmp_path), tmp_path, CONSOLE, Cluster("nowhere"))
    assert cluster.call("squeue", "--noheader") == ""


@pytest.mark.engines
def test_the_battery_on_each_node_of_a_partition(
    bench: Bench, digest: str, cluster: slurm.Cluster, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    argv = ("selftest", NAME, "--slurm=pair", "--gpu", "off", "-o", str(page), "--json")
    out, err = bench.run(*argv, env=cluster.env)
    found = json.loads(out)
    assert len(found["machines"]) == 6
    assert {machine["image"] for machine in found["machines"]} == {digest}
    assert (found["deviations"], found["silent"]) == ([], {})
    assert b"n2 busy 2" in page.read_bytes()
    assert "2 nodes" in err


@pytest.mark.engines
def test_a_node_that_never_answers_and_one_that_dies(cluster: slurm.Cluster, tmp_path: Path) -> None:
    """The scheduler takes them for lost after a while; the third node's reports are gathered."""
    running = tmp_path / "running"
    command = printing(tmp_path, n3=f"touch {running}; exec sleep 300")

    def die() -> None:
        while not running.exists() and not ended.wait(0.1):
            pass
        cluster.nodes["n3"].kill()

    ended, killer = threading.Event(), threading.Thread(target=die)
    os.killpg(cluster.nodes["n2"].pid, signal.SIGSTOP)
    killer.start()
    try:
        found = run(tmp_path, command, Cluster(minutes=1))
    finally:
        ended.set()
        killer.join()
    assert running.exists()
    assert {machine.name.partition(" ")[0] for machine in found.machines} == {"n1"}
    assert [each.node for each in found.silent] == ["n2", "n3"]
    assert all("no report of its run 'alone'" in each.reason for each in found.silent)


@pytest.mark.parametrize(
    ("sinfo", "sbatch", "message"),
    [
        ("sinfo: error: x", "7", "sinfo said 'sinfo: error: x'"),
        ("n1|p*", "7", "sinfo said 'n1|p*'"),
        ("n1|p*|idle|x", "7", "which is not a node"),
        ("-rf;$(mine)|p*|idle", "7", "which is not a node"),
        ("n1|p*|idle", "\N{SUPERSCRIPT TWO}", "which is not a job ID"),
        ("n1|p*|idle", "--all", "which is not a job ID"),
    ],
)
def test_words_of_slurm_that_are_no_answer(
    sinfo: str, sbatch: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"sinfo": sinfo, "sbatch": sbatch}
    monkeypatch.setattr(slurm_module, "_asked", lambda program, *_, **__: said.get(program, ""))
    with pytest.raises(HostError) as caught:
        run(tmp_path, ["true"])
    assert message in str(caught.value)


def test_what_lies_in_the_folder_of_reports_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("user:hunter2\n")
    (tmp_path / "0.node").symlink_to("secret")
    said = {"sinfo": "n1|p*|idle", "sbatch": "7", "squeue": "9|RUNNING|x\n\N{SUPERSCRIPT TWO}|RUNNING|x"}
    monkeypatch.setattr(slurm_module, "_asked", lambda program, *_, **__: said.get(program, ""))
    monkeypatch.setattr(
        slurm_module, "_tried", lambda program, *_: Completed(0, said.get(program, "").encode(), b"")
    )
    (silent,) = run_on_nodes(["true"], tmp_path, CONSOLE, Cluster(minutes=1)).silent
    assert silent.reason == "Slurm ran its task on something that is not a node"
