"""The command ``selftest``: test an image, prove, measure the cost, compare reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ..engines.embedded import OciEngine
from ..errors import SelfTestError
from ..host.home import atomic_write, kind_of
from ..host.host import Host
from ..pipeline.steps import selftest_image
from ..render.own_files import selftest_files
from ..selftest.agreement import Agreement, Unmatched, compare, unmatched
from ..selftest.cost import CostReport
from ..selftest.pages import cost_plot
from ..selftest.report import Mode, SelfTestReport
from ..selftest.run import Gpu, run_cost
from ..selftest.slurm import Cluster
from ..selftest.summary import summary
from . import complete
from .fleet import compare_fleet, read_report, run_on_slurm
from .output import as_json, columns, emit, file_option, gpu, table

_PAGE = Path("fleet.html")


@click.command()
@click.argument("targets", nargs=-1, metavar="[IMAGE | REPORT...]", shell_complete=complete.images_or_files)
@gpu
@click.option("--full", "mode", flag_value="full", help="Include the checks that take longer.")
@click.option(
    "--prove",
    "mode",
    flag_value="prove",
    help="Show that nondeterminism occurs without the settings and disappears with them.",
)
@click.option("--cost", "mode", flag_value="cost", help="Measure what determinism costs.")
@click.option("--against", type=click.Path(path_type=Path), metavar="REPORT", help="Compare with a report.")
@click.option("--fleet", "fleet_", is_flag=True, help="Compare the reports of many machines.")
@click.option(
    "--slurm",
    is_flag=False,
    flag_value="",
    metavar="[=PARTITION]",
    help="Run it on each node of a Slurm partition, by default the cluster's, and compare them.",
)
@click.option(
    "--within",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    metavar="MINUTES",
    help="With --slurm: cancel jobs that have not finished after this time.",
)
@file_option(
    "-o", "--output", text="Page of --fleet or --slurm [default: fleet.html], or plot of --cost (SVG)."
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
    slurm: str | None,
    within: int,
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
    reprobuild selftest reprobuild/torch:2.4.1-cu121-py311 --slurm=gpu
    """
    _refuse(fleet=fleet_, slurm=slurm is not None, mode=mode, against=against, output=output)
    if fleet_:
        compare_fleet(targets, output or _PAGE, json_=json_)
    elif slurm is None:
        _test(host, targets, mode, against, gpu=gpu, output=output, json_=json_)
    elif len(targets) == 1:
        run_on_slurm(host, targets[0], Cluster(slurm, within), output or _PAGE, gpu=gpu, json_=json_)
    else:
        raise click.UsageError("--slurm tests one image; its partition is named as in --slurm=PARTITION")


def _refuse(*, fleet: bool, slurm: bool, mode: str | None, against: Path | None, output: Path | None) -> None:
    """Raise UsageError for options that do not go together."""
    if fleet and (mode or against or slurm):
        raise click.UsageError("--fleet only compares existing reports; it cannot be combined with a test")
    if slurm and (mode or against):
        raise click.UsageError(
            "--slurm runs the battery on many machines; it cannot be combined with another test"
        )
    if against and mode in ("prove", "cost"):
        raise click.UsageError(f"--against compares results, and --{mode} gives none")
    if output and not (fleet or slurm or mode == "cost"):
        raise click.UsageError("-o needs --fleet, --slurm or --cost")


def _test(
    host: Host,
    targets: tuple[str, ...],
    mode: str | None,
    against: Path | None,
    *,
    gpu: Gpu,
    output: Path | None,
    json_: bool,
) -> None:
    """Test one image here, or compare two reports."""
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
        report = read_report(Path(target))
        _against(report, earlier, target, against, json_=json_)
        raise_failures(target, report)
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
        table("", [("image", image), *summary(report, power=True)])


def _against(
    report: SelfTestReport, earlier: SelfTestReport, name: str, path: Path | None, *, json_: bool
) -> None:
    found = compare(earlier, report)
    if not found:
        raise SelfTestError(f"{path}: no check has results both there and in {name}")
    alone = unmatched(earlier, report)
    if json_:
        emit(
            {
                "report": report.to_dict(),
                "against": str(path),
                "agreements": [asdict(each) for each in found],
                "unmatched": [
                    {"name": each.name, "device": each.device, "in": "against" if each.first else "report"}
                    for each in alone
                ],
            }
        )
    else:
        rows = [*_agreement_rows(found), *_unmatched_rows(alone, str(path), name)]
        table("", [("image", name), ("against", str(path)), *rows])
    raise_failures(str(path), earlier)
    differing = [each for each in found if each.state == "differs"]
    if differing:
        names = ", ".join(_label(each) for each in differing)
        raise SelfTestError(
            f"{name} gives other bits than {path} on the same kind of machine: {names}",
            hint="the machine, the driver or the image does not match its report",
        )


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
        rows.append(("not comparable", f"{len(group)} checks, which depend on what differs: {reason}"))
        rows += [("", f"{_label(each)}: {_apart(each)}") for each in group]
    return rows


def _unmatched_rows(alone: Sequence[Unmatched], first: str, second: str) -> list[tuple[str, str]]:
    rows = []
    for report, of_first in ((first, True), (second, False)):
        if labels := [_label(each) for each in alone if each.first is of_first]:
            rows.append(("not compared", f"these have results in {report} alone: {', '.join(labels)}"))
    return rows


def _apart(each: Agreement) -> str:
    if not each.results:
        return "the same bits nevertheless"
    return f"other bits{_distance(each.ulp)}"


def _distance(ulp: int | None) -> str:
    return "" if ulp is None else f"; {ulp} ULP at most in the values kept"


def _label(each: Agreement | Unmatched) -> str:
    return each.name if each.device == "cpu" else f"{each.name} ({each.device})"


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
