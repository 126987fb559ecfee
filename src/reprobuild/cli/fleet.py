"""``selftest --fleet`` and ``--slurm``: the reports of many machines, side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..engines.embedded import OciEngine
from ..errors import SelfTestError
from ..host.home import atomic_write, make_folders, open_regular, storage_errors
from ..host.host import Host
from ..selftest.fleet import Fleet, Machine, fleet
from ..selftest.pages import fleet_page
from ..selftest.report import LARGEST, SelfTestReport
from ..selftest.run import Gpu
from ..selftest.slurm import Cluster, Gathered, drain, run_on_nodes
from .output import columns, emit, to_stderr


def read_report(path: Path) -> SelfTestReport:
    """Read a report from a file. Raises UsageError, which names the file: no image has failed."""
    try:
        with open_regular(path) as file:
            return SelfTestReport.parse_kept(file.read(LARGEST + 1))
    except OSError as error:
        why = error.strerror
    except SelfTestError as error:
        why = error.message
    raise click.UsageError(f"{path}: {why}; `reprobuild selftest IMAGE --json` writes a report")


def compare_fleet(paths: Sequence[str], output: Path, *, json_: bool) -> None:
    """Compare reports that exist. Raises UsageError, and `SelfTestError` for a machine that deviates."""
    if len(paths) < 2:
        raise click.UsageError("--fleet needs two reports or more")
    if len(set(paths)) < len(paths):
        raise click.UsageError("--fleet: a report is listed more than once")
    stems = [Path(path).stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else paths
    found = fleet(
        [Machine(name=name, report=read_report(Path(path))) for name, path in zip(names, paths, strict=True)]
    )
    _show(found, output, {}, json_=json_)
    lines = _deviations(found)
    if lines:
        machines = ", ".join(dict.fromkeys(each.machine for each in found.deviations))
        raise SelfTestError(f"within one kind of machine, these deviate: {machines}\n" + "\n".join(lines))


def run_on_slurm(host: Host, image: str, cluster: Cluster, output: Path, *, gpu: Gpu, json_: bool) -> None:
    """Test an image on each node of a Slurm partition and compare them.

    Raises `HostError`, `ImageError`, and `SelfTestError` for a node that fails, deviates, or gives no report.
    """
    digest = OciEngine(host).images.find(image).digest
    folder = output.absolute().with_suffix(".reports")
    make_folders(folder)
    with storage_errors(folder):
        for path in folder.iterdir():
            # Of an earlier run, whose reports are none of this one's.
            if path.suffix in (".json", ".log", ".node", ".partial"):
                path.unlink()
    # The digest: an image of another name on a node would be another image.
    command = ["env", f"REPROBUILD_HOME={host.home.root}", sys.executable, "-m", "reprobuild"]
    command += ["--quiet", "selftest", digest, "--json", "--gpu", gpu]
    gathered = run_on_nodes(command, folder, host.console, cluster)
    if gathered.machines:
        found = fleet(gathered.machines)
        silent = {each.node: each.reason for each in gathered.silent}
        _show(found, output, {"silent": silent, "reports": str(folder)}, json_=json_)
        _raise_bad(found, gathered)
    else:
        lines = [f"{each.node}: {each.reason}" for each in gathered.silent]
        raise SelfTestError(
            "no node returned a report:\n" + "\n".join(lines), hint=f"the logs are in {folder}"
        )


def _raise_bad(found: Fleet, gathered: Gathered) -> None:
    bad: dict[str, list[str]] = {}
    for machine in found.machines:
        if machine.report.verdict != "passed":
            checks = ", ".join(check.label for check in machine.report.failed)
            bad.setdefault(gathered.node_of(machine.name), []).append(f"failed {checks}")
    for each in found.deviations:
        bad.setdefault(gathered.node_of(each.machine), []).append(f"{each.check} deviates")
    lines = [f"{each.node}: {each.reason}" for each in gathered.silent]
    lines += _deviations(found)
    for node, reasons in bad.items():
        lines.append(
            f"{node}: take it out of the cluster with: {drain(node, ', '.join(dict.fromkeys(reasons)))}"
        )
    if lines:
        nodes = ", ".join(dict.fromkeys([*bad, *(each.node for each in gathered.silent)]))
        raise SelfTestError(
            f"these nodes failed, deviate or returned no report: {nodes}\n" + "\n".join(lines)
        )


def _show(found: Fleet, output: Path, more: Mapping[str, Any], *, json_: bool) -> None:
    """Write the page, and print the table."""
    atomic_write(output, fleet_page(found))
    names = [machine.name for machine in found.machines]
    if json_:
        emit({**found.to_dict(), **more})
    else:
        columns(
            ("CHECK", "DEVICE", *names),
            [
                (
                    row.name,
                    row.device,
                    *(cell.bits + ("!" if cell.state == "deviates" else "") or "-" for cell in row.cells),
                )
                for row in found.rows
            ],
        )
        click.echo(f"\nsame letter: same bits; with !: other bits than its own kind\npage: {output}")
    if len(found.programs) > 1:
        groups = "; ".join(f"{', '.join(names)}: {hash_[:12]}" for hash_, names in found.programs.items())
        to_stderr(f"these reports are of different self-test programs, so compared apart ({groups})")


def _deviations(found: Fleet) -> list[str]:
    return [
        f"{each.machine}: {each.check} on {each.device} has other bits than on {', '.join(each.others)}"
        for each in found.deviations
    ]
