"""Reports as lines for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def cost_text(report: Mapping[str, Any]) -> str:
    """Return the report of ``--cost`` as lines for a person."""
    lines = [f"{'device':6} {'operation':22} {'on':>10} {'off':>10} {'on/off':>7}"]
    for line in report["costs"]:
        start = f"{line['device']:6} {line['name']:22} "
        if line["reason"]:
            lines.append(start + line["reason"])
        else:
            times = f"{line['on'] * 1e3:7.3f} ms {line['off'] * 1e3:7.3f} ms"
            lines.append(f"{start}{times} {line['ratio']:7.2f}")
    if not report["gpu"]["tested"]:
        lines.append(f"GPU not measured: {report['gpu']['reason']}")
    return "\n".join([*lines, ""])


def text_of(report: Mapping[str, Any]) -> str:
    """Return the report as lines for a person."""
    lines = []
    for line in report["checks"]:
        lines.append(
            f"{line['status']:12} {line['device']:5} {line['name']:24} {line['reason'] or line['proves']}"
        )
        lines += [f"{'':19}{d['what']}: expected {d['expected']}, got {d['got']}" for d in line["detail"]]
        lines += [f"{'':19}{text}" for text in line["notes"]]
    if not report["gpu"]["tested"]:
        lines.append(f"GPU not tested: {report['gpu']['reason']}")
    return "\n".join([*lines, f"{report['verdict']} in {report['seconds']} s", ""])
