"""Programs that repeat, ten runs each: none is called guilty.

Those in the log formats of frameworks need these: ``REPROBUILD_TWICE_FRAMEWORKS_PYTHON`` names a Python that
has some of Keras, Lightning, Transformers, Ignite, XGBoost, LightGBM, CatBoost, Optuna, MLflow, wandb, Hydra,
TensorBoard, scikit-learn, pandas with pyarrow and h5py, rich, loguru and tqdm beside torch. The projects in
``twice_programs/clean`` also use Accelerate, DuckDB, hyperopt, Matplotlib, psutil, PyTorch Geometric and
Stable-Baselines3; one that lacks a library is skipped.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import rows, verdict, verdict_line
from reprobuild.twice.runs import compare_runs
from support.twice import CLEAN, PROGRAMS, compared, recorded, scratch_of_one_name

pytestmark = pytest.mark.torch

FRAMEWORKS = Path(__file__).parent / "twice_programs/frameworks.py"
PROJECTS = sorted((FRAMEWORKS.parent / "clean").glob("*.py"))
IN_FRAMEWORKS = [
    each.name
    for each in ast.parse(FRAMEWORKS.read_text()).body
    if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
]
LEFT = {
    "mmengine_like": "a mean of times that NumPy rounds to a few digits is not followed",
    "wandb_off": "its own file of records has the times, and is compared by its bytes",
    "d09": "which worker got how many tasks",
    "d12": "a chart of times, and a time of day in whole numbers in a pickle",
    "d15": "a run's name is drawn from lists of words",
    "d16": "the last state of a progress bar has a number that grows while it is drawn",
    "d17": "which worker got which task",
    "d19": "milliseconds of one digit",
    "d20": "a chart of times",
    "k17": "in some runs: a difference of memory figures that is a few kilobytes",
    "l17": "in some runs: deviations of a few times that differ much on a busy machine",
    "o03": "in some runs: process numbers of three digits",
    "o05": "in some runs: the slowest of many times",
    "o08": "a share of the processor that psutil measures and that is 0 or 100 at times",
    "o16": "a picture of times",
    "o18": "columns that run into each other where times are long",
    "o20": "figures that psutil gives to workers",
    "y11": "shares of times that came from workers, and which worker got which task",
    "y18": "in some runs: a netCDF file of SciPy's, with dates and names drawn in its texts",
    "u06": "in some runs: hours of the processor and other small figures of what workers took",
    "w12": "the order in which workers end, in a list of a JSON file",
    "w13": "what a worker did last, in a line of progress",
    "w14": "delays that the system draws, and by which requests end in another order",
    "w20": "which thread of a pool with a name of its own got which task",
    "v05": "a port made of the process number, which is another one in each run outside of a container",
    "v09": "durations that a database of trials gives back, in a pickle",
    "v11": "a picture of tasks in one line, with times of two digits",
    "v12": "the times that a solver in C prints, each once",
    "v13": "microseconds of two digits among hundreds of lines",
    "v14": "a hash of the time at which it began",
    "v17": "the order of rows, and of names of threads, that two workers write",
    "v18": "speeds of four programs in files of their own, each once",
    "v19": "a pickle with an estimator's time and the time at which it was saved",
    "p14": "how many transactions there were up to a time, in lines of progress",
    "p05": "which of several requests at once found a page first",
    "p11": "the order of events of two threads in a file of JSON lines",
    "p17": "a date with spaces in the place of zeros, as Fortran writes it",
    "p18": "results in the order in which threads ended, in one line of JSON",
    "p19": "shares of times in a page, and which task ended first",
    "p20": "speeds made of one millisecond or a few",
    "q02": "a closing quotation that is drawn without a seed, which is another one in each run indeed",
    "q05": "a bar of progress that is drawn again and again within one line, with other shares each time",
    "q06": "which worker got which task",
    "q07": "a bar of progress with figures that depend on when it is drawn",
    "q08": "the order of connections, and ports and identifiers of two processes in one file",
    "q09": "the order of samples of several threads, and means of a few milliseconds",
    "q12": "the order in which jobs end, in the log of the one that waits for them",
    "q16": "a folder named by the time of day in six digits, and pieces named by what is drawn",
    "q17": "times in the header of a film, and in a picture made of them",
    "k16": "the processor's clock rate, which is read from /proc",
}
"""Those that are found guilty, with the reason."""


@pytest.mark.parametrize("name", CLEAN)
def test_ten_runs_of_a_clean_program_are_equal(name: str, tmp_path: Path) -> None:
    need_torch()
    found = compared(torch_python(), [str(PROGRAMS / "clean.py"), name], tmp_path, how=HowToRun(times=10))
    assert verdict(found) in ("repeats", "text"), verdict_line(found)  # the classifier prints its seconds


@pytest.mark.parametrize("program", PROJECTS, ids=lambda p: p.stem)
def test_ten_runs_of_a_clean_project_are_equal(
    program: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if program.stem in LEFT:
        request.applymarker(pytest.mark.xfail(reason=LEFT[program.stem]))
    ten_runs([str(program)], tmp_path)


@pytest.mark.parametrize("name", IN_FRAMEWORKS)
def test_ten_runs_in_the_formats_of_frameworks_are_equal(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name in LEFT:
        request.applymarker(pytest.mark.xfail(reason=LEFT[name]))
    ten_runs([str(FRAMEWORKS), name], tmp_path)


def ten_runs(argv: list[str], tmp_path: Path) -> None:
    need_torch()
    python = os.environ.get("REPROBUILD_TWICE_FRAMEWORKS_PYTHON") or torch_python()

    run = recorded(python, argv, env={"HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)})
    found = compare_runs(run, HowToRun(times=10, trace=False), scratch_of_one_name(tmp_path), lambda _: None)
    if found.runs[0].status:
        pytest.skip(found.runs[0].last[-200:])
    assert verdict(found) in ("repeats", "text"), [verdict_line(found), *rows(found)]
