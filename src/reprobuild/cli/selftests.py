"""The command ``selftest``: run it again, prove that it can detect, measure its cost, compare its reports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from ..engines.embedded import OciEngine
from ..errors import SelfTestError
from ..host.home import atomic_write, kind_of, open_regular
from ..host.host import Host
from ..pipeline import selftest_image
from ..render.own_files import selftest_files
from ..selftest.agreement import Agreement, compare
from ..selftest.cost import CostReport
from ..selftest.fleet import Fleet, Machine, fleet
from ..selftest.pages import cost_plot, fleet_page
from ..selftest.report import LARGEST, Mode, SelfTestReport
from ..selftest.run import Gpu, run_cost
from ..selftest.summary import summary
from . import completing
from .output import as_json, columns, emit, gpu, table


@click.command()
@click.argument("targets", nargs=-1, metavar="[IMAGE | REPORT...]", shell_complete=completing.images_or_files)
@gpu
@click.option("--full", "mode", flag_value="full", help="Include what takes longer than seconds.")
@click.option("--prove", "mode", flag_value="prove", help="Watch nondeterminism appear and disappear here.")
@click.option("--cost", "mode", flag_value="cost", help="Measure what determinism costs.")
@click.option("--against", type=click.Path(path_type=Path), metavar="REPORT", help="Compare with a report.")
@click.option("--fleet", "fleet_", is_flag=True, help="Compare the reports of many machines.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Page of --fleet [default: fleet.html], or plot of --cost (SVG).",
)
@as_json
@click.pass_obj
def selftest(
    host: Host,
    targets: tuple[str, ...],
    *,
    gpu: Gpu,
    mode: str | None,
    against: Path | None,
    fleet_: bool,
    output: Path | None,
    json_: bool,
) -> None:
    """Run the self-test of an image, or compare its reports.

    A result holds for this kind of machine. Exit status 9 if the image fails, if --prove saw no
    nondeterminism, or if a machine deviates from its own kind.

    REPORT is a file that `--json` has written. Without an image, `--against` tests the one that its report
    names; it also accepts a second report in place of the image.

    \b
    reprobuild selftest reprobuild/torch:2.4.1-cu121-py311 --gpu require
    reprobuild selftest reprobuild/torch:2.4.1-cu121-py311 --against a100.json
    reprobuild selftest --fleet a100.json h100.json -o fleet.html
    """
    if fleet_ and (mode or against):
        raise click.UsageError("--fleet only compares existing reports; it cannot be combined with a test")
    if against and mode in ("prove", "cost"):
        raise click.UsageError(f"--against compares results, and --{mode} gives none")
    if output and not (fleet_ or mode == "cost"):
        raise click.UsageError("-o needs --fleet or --cost")
    if fleet_:
        _fleet(targets, output or Path("fleet.html"), json_=json_)
        return
    if len(targets) > 1 or (not targets and against is None):
        raise click.UsageError("pass one image, or reports with --fleet")
    earlier = read_report(against) if against else None
    target = targets[0] if targets else earlier.digest if earlier else ""
    if not target:
        raise click.UsageError(f"{against} names no image; pass one")
    if earlier is None and kind_of(target) == "file":
        raise click.UsageError(f"{target} is a file; a report is compared with --against or --fleet")
    if mode == "cost":
        _cost(host, target, gpu, output, json_=json_)
    elif earlier and target.endswith(".json"):
        _against(read_report(Path(target)), earlier, target, against, json_=json_)
    else:
        engine = OciEngine(host)
        kind: Mode = "full" if mode == "full" else "prove" if mode == "prove" else "battery"
        digest = engine.images.find(target).digest
        report = selftest_image(engine, digest, gpu, host, mode=kind)
        if earlier:
            _against(report, earlier, target, against, json_=json_)
        else:
            _show(report, target, json_=json_)
        raise_failures(target, report)


COMMANDS: tuple[click.Command, ...] = (selftest,)


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


def raise_failures(image: str, report: SelfTestReport) -> None:
    """Raise `SelfTestError` unless the report's verdict is that it passed."""
    if report.verdict == "failed":
        names = ", ".join(check.label for check in report.failed)
        raise SelfTestError(f"{image} failed its self-test ({names}):\n" + "\n".join(report.failures()))
    if report.verdict == "inconclusive":
        raise SelfTestError(
            f"{image}: the proof is inconclusive; a control that saw no nondeterminism proves nothing",
            hint="try again on a machine with more cores, or on a quiet one",
        )


def _show(report: SelfTestReport, image: str, *, json_: bool) -> None:
    if json_:
        emit(report.to_dict())
    else:
        table("", [("image", image), *summary(report)])


def _against(
    report: SelfTestReport, earlier: SelfTestReport, name: str, path: Path | None, *, json_: bool
) -> None:
    found = compare(earlier, report)
    if not found:
        raise SelfTestError(f"{path}: no check has results both there and in {name}")
    if json_:
        emit(
            {
                "report": report.to_dict(),
                "against": str(path),
                "agreements": [_agreement_json(each) for each in found],
            }
        )
    else:
        table("", [("image", name), ("against", str(path)), *_agreement_rows(found)])
    differing = [each for each in found if each.state == "differs"]
    if differing:
        names = ", ".join(_label(each) for each in differing)
        raise SelfTestError(
            f"{name} gives other bits than {path} on the same kind of machine: {names}",
            hint="the machine, the driver or the image is not what it seems to be",
        )


def _agreement_json(each: Agreement) -> dict[str, Any]:
    return {field: getattr(each, field) for field in Agreement.__slots__}


def _agreement_rows(found: tuple[Agreement, ...]) -> list[tuple[str, str]]:
    counts = Counter(each.state for each in found)
    rows = [("equal", f"{counts['equal']} of {len(found)} checks, bit for bit")]
    rows += [
        ("differs", f"{_label(each)}: {', '.join(each.results)}{_distance(each.ulp)}")
        for each in found
        if each.state == "differs"
    ]
    apart: dict[str, list[Agreement]] = {}
    for each in found:
        if each.state == "not comparable":
            apart.setdefault(each.reason, []).append(each)
    for reason, group in apart.items():
        rows.append(("not comparable", f"{len(group)} checks: the machines are of two kinds. {reason}"))
        rows += [("", f"{_label(each)}: {_apart(each)}") for each in group]
    return rows


def _apart(each: Agreement) -> str:
    if not each.results:
        return "the same bits nevertheless"
    return f"other bits{_distance(each.ulp)}"


def _distance(ulp: int | None) -> str:
    return "" if ulp is None else f"; {ulp} ULP at most in the values kept"


def _label(each: Agreement) -> str:
    return each.name if each.device == "cpu" else f"{each.name} ({each.device})"


def _fleet(paths: tuple[str, ...], output: Path, *, json_: bool) -> None:
    if len(paths) < 2:
        raise click.UsageError("--fleet needs two reports or more")
    if len(set(paths)) < len(paths):
        raise click.UsageError("--fleet: a report is listed more than once")
    stems = [Path(path).stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else paths
    found = fleet(
        [Machine(name=name, report=read_report(Path(path))) for name, path in zip(names, paths, strict=True)]
    )
    atomic_write(output, fleet_page(found))
    if json_:
        emit(found.to_dict())
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
        host_note = f"these reports are of different self-test programs, so compared apart ({groups})"
        click.echo(host_note, err=True)
    _raise_deviations(found)


def _raise_deviations(found: Fleet) -> None:
    lines = [
        f"{each.machine}: {each.check} on {each.device} has other bits than on {', '.join(each.others)}"
        for each in found.deviations
    ]
    if lines:
        machines = ", ".join(dict.fromkeys(each.machine for each in found.deviations))
        raise SelfTestError(f"within one kind of machine, these deviate: {machines}\n" + "\n".join(lines))


def _cost(host: Host, image: str, gpu: Gpu, output: Path | None, *, json_: bool) -> None:
    engine = OciEngine(host)
    digest = engine.images.find(image).digest
    host.console.step(f"measuring {digest[:19]}")
    report = run_cost(engine.runner(digest), program=selftest_files(), gpu=gpu)
    if output:
        atomic_write(output, cost_plot(report))
    if json_:
        emit(report.to_dict())
        return
    columns(("OPERATION", "DEVICE", "ON", "OFF", "ON/OFF", ""), _cost_rows(report))
    if not report.gpu_tested:
        click.echo(f"\nGPU not measured: {report.gpu_reason}")
    if output:
        click.echo(f"plot: {output}")


def _cost_rows(report: CostReport) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for cost in report.costs:
        if cost.on is None or cost.off is None or cost.ratio is None:
            rows.append((cost.name, cost.device, "-", "-", "-", cost.reason))
            continue
        bar = "█" * round(8 * min(cost.ratio, 6))
        times = (f"{seconds * 1e3:.3f} ms" for seconds in (cost.on, cost.off))
        rows.append((cost.name, cost.device, *times, f"{cost.ratio:.2f}", bar))
    return rows
