"""A real Slurm on loopback: a scheduler, and nodes that are all this machine. Root alone starts it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from conftest import needs
from support.engines import needs_root

_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdTimeout=10
ReturnToService=2
EnforcePartLimits=ANY
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SchedulerParameters=sched_interval=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
"""
_SECONDS = 60


@dataclass
class Cluster:
    """The nodes n1, n2, … in the partition ``main``, the first two in ``pair``; ``short`` takes a minute."""

    folder: Path
    env: Mapping[str, str]
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def call(self, *argv: str) -> str:
        """Run a command of Slurm; return what it printed."""
        env = {**os.environ, **self.env}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def slurm(count: int) -> Iterator[Cluster]:
    """Give a cluster whose nodes are all ready."""
    needs_root()
    for program in ("slurmctld", "slurmd", "munged", "sbatch"):
        needs(program)
    # The path of a socket has 107 characters at most.
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as short:
        folder, started = Path(short), list[subprocess.Popen[bytes]]()
        ports = _free_ports(count + 1)
        nodes = [
            f"NodeName=n{n} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN\n"
            for n, port in enumerate(ports[1:], 1)
        ]
        conf = _CONF.format(host=socket.gethostname(), port=ports[0], folder=folder)
        partition = "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        partition += "PartitionName=pair Nodes=n1,n2 State=UP\n"
        partition += "PartitionName=short Nodes=ALL MaxTime=1 State=UP\n"
        (folder / "slurm.conf").write_text(conf + "".join(nodes) + partition)
        (folder / "key").write_bytes(os.urandom(1024))
        (folder / "key").chmod(0o400)
        cluster = Cluster(folder, {"SLURM_CONF": str(folder / "slurm.conf")})

        def start(name: str, *argv: str) -> subprocess.Popen[bytes]:
            with (folder / f"{name}.log").open("wb") as log:
                path = shutil.which(argv[0], path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
                command = [str(path), *argv[1:]]
                started.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))
            return started[-1]

        try:
            own = [f"--{name}={folder}/munge.{name[:-5]}" for name in ("pid-file", "log-file", "seed-file")]
            start(
                "munged", "munged", "--foreground", "--force", f"--key-file={folder}/key", *own,
                f"--socket={folder}/munge.socket",
            )  # fmt: skip
            _wait((folder / "munge.socket").exists, folder)
            start("slurmctld", "slurmctld", "-D", "-f", str(folder / "slurm.conf"))
            for n in range(1, count + 1):
                # With processes of its own, which end with it: a job's outlive its daemon.
                apart = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
                argv = (*apart, "slurmd", "-D", "-N", f"n{n}", "-f", str(folder / "slurm.conf"))
                cluster.nodes[f"n{n}"] = start(f"n{n}", *argv)

            def ready() -> bool:
                argv = ["sinfo", "--noheader", "--Node", "--partition=main", "--format=%T"]
                done = subprocess.run(
                    argv, env={**os.environ, **cluster.env}, capture_output=True, text=True, check=False
                )
                return done.stdout.split() == ["idle"] * count

            _wait(ready, folder)
            yield cluster
        finally:
            for process in reversed(started):
                os.killpg(process.pid, signal.SIGCONT)
                process.terminate()
            for process in started:
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _wait(condition: Callable[[], bool], folder: Path) -> None:
    end = time.monotonic() + _SECONDS
    while not condition():
        logs = "\n".join(path.read_text("utf-8", "replace")[-800:] for path in folder.glob("*.log"))
        assert time.monotonic() < end, logs
        time.sleep(0.1)
