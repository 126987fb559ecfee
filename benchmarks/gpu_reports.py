"""Runs the self-test on this machine's GPU, without an image, and writes reports to send to the project.

    .venv/bin/python benchmarks/gpu_reports.py [PYTHON] [FOLDER]

PYTHON has torch for CUDA and NumPy (default: python3 on PATH); the reports get into FOLDER (default:
gpu-reports). Takes five to ten minutes and needs no network. The reports name GPU, driver, processor and
versions; what they say of folders of this machine is left out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from reprobuild import assets
from reprobuild.render.program import selftest_program
from reprobuild.request import profiles
from reprobuild.request.model import Request

LIMIT = ("--time-limit", "1800")
RUNS: dict[str, tuple[str, ...]] = {
    "battery": LIMIT,
    "prove": ("--prove", *LIMIT),
    "full": ("--full", *LIMIT),
    "cost": ("--cost",),
}
PLACE = re.compile(r"(?<![\w.])/[\w.+@~-]+(?:/[\w.+@~-]+)*")
HOOK = "import reprobuild_hook\n"


def main() -> int:
    """Run the program in each of its modes; return 1 if one failed."""
    python = sys.argv[1] if len(sys.argv) > 1 else shutil.which("python3") or sys.executable
    target = Path(sys.argv[2] if len(sys.argv) > 2 else "gpu-reports")
    target.mkdir(exist_ok=True)
    request = Request.from_dict({"cuda": "cpu"}, "this machine")
    bad = False
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "selftest.py").write_bytes(selftest_program())
        (folder / "golden.json").write_bytes(assets.in_image("golden.json"))
        (folder / "hook").mkdir()
        (folder / "hook/sitecustomize.py").write_text(HOOK)
        (folder / "hook/reprobuild_hook.py").write_bytes(assets.in_image("reprobuild_hook.py"))
        variables = {**profiles.variables(request, None), "PYTHONPATH": str(folder / "hook")}
        for name, options in RUNS.items():
            command = [python, str(folder / "selftest.py"), "--json", "--device", "cuda", *options]
            done = subprocess.run(
                ["env", *(f"{key}={value}" for key, value in variables.items()), *command],
                stdout=subprocess.PIPE,
                check=False,
            )
            bad |= done.returncode not in (0, 3)  # 3: a control saw nothing
            if not done.stdout:
                sys.stderr.write(f"{name}: no report, status {done.returncode}\n")
                return 1
            report = json.loads(done.stdout)
            if not report["gpu"]["tested"]:
                sys.stderr.write(f"no GPU was tested: {report['gpu']['reason']}\n")
                return 1
            for check in report.get("checks", ()):
                check["notes"] = [note for note in check["notes"] if "/" not in note]
                check["traceback"] = ""
                check["reason"] = PLACE.sub("FOLDER", check["reason"])
                check["detail"] = [
                    {key: PLACE.sub("FOLDER", text) for key, text in line.items()} for line in check["detail"]
                ]
                if check["status"] == "failed":
                    sys.stderr.write(f"{name}: {check['name']} ({check['device']}): {check['reason']}\n")
            (target / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
            sys.stderr.write(f"{target / name}.json: {report.get('verdict', 'measured')}\n")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
