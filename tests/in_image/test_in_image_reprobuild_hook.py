"""The import hook, in real interpreters: with a stand-in for torch (fast), then with torch itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from torch_python import image_environment, make_venv, run

# What the hook touches of torch, and no more.
FAKE_TORCH = """
from types import SimpleNamespace
log = []
def set_flag(mode, *, warn_only): log.append(("flag", mode, warn_only))
def set_fill(on): log.append(("fill", on))
_C = SimpleNamespace(
    _set_deterministic_algorithms=set_flag, _set_deterministic_fill_uninitialized_memory=set_fill
)
backends = SimpleNamespace(
    cudnn=SimpleNamespace(deterministic=False, benchmark=True, allow_tf32=True),
    cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)),
)
def manual_seed(seed): log.append(("seed", seed))
def use_deterministic_algorithms(mode): log.append(("public", mode))
"""
SHOW = """
import json, torch
c = torch.backends.cudnn
matmul = torch.backends.cuda.matmul
print(json.dumps([torch.log, c.deterministic, c.benchmark, c.allow_tf32, matmul.allow_tf32]))
"""
ON: list[Any] = [[["flag", True, False], ["fill", False]], True, False, False, False]
OFF = [[], False, True, True, True]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {
        "torch/__init__.py": FAKE_TORCH,
        "numpy/__init__.py": "",
        "numpy/random.py": "log = []\nseed = log.append",
    }
    return make_venv(tmp_path_factory.mktemp("hook") / "venv", torch=False, files=files)


def shown(python: Path, *argv: str, **changes: str) -> object:
    done = run(python, *argv, env=image_environment(**changes))
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("options", [[], ["-I"], ["-E"]])
def test_the_settings_are_made_however_python_is_started(python: Path, options: list[str]) -> None:
    assert shown(python, *options, "-c", SHOW) == ON


def test_bytecode_is_written_as_ever_and_none_of_the_hook(python: Path) -> None:
    """`check` names bytecode that the lock does not have: root must not add any of the hook."""
    site = next(python.parents[1].glob("lib/python*/site-packages"))
    done = run(python, "-c", "import sys, torch; print(sys.dont_write_bytecode)")
    assert (done.stdout, done.stderr) == ("False\n", "")
    assert list(site.glob("torch/__pycache__/*"))
    assert not list(site.glob("__pycache__/reprobuild*"))


def test_the_switch_turns_it_off(python: Path) -> None:
    assert shown(python, "-c", SHOW, REPROBUILD_DETERMINISM="off") == OFF


def test_new_memory_stays_filled_where_the_request_asks_for_it(python: Path) -> None:
    assert shown(python, "-c", SHOW, REPROBUILD_FILL="1") == [ON[0][:1], *ON[1:]]


def test_a_torch_with_two_sets_of_names_for_tf32_keeps_both(tmp_path: Path) -> None:
    new = FAKE_TORCH + "backends.cuda.matmul.fp32_precision = 'none'\n"
    python = make_venv(tmp_path / "venv", torch=False, files={"torch/__init__.py": new})
    assert shown(python, "-c", SHOW) == [*ON[:3], True, True]


def test_torch_2_0_asserts_the_names_that_it_knows_and_is_set_up(tmp_path: Path) -> None:
    old = (
        FAKE_TORCH
        + """
class Matmul:
    allow_tf32 = True
    def __getattr__(self, name):
        assert name == "allow_tf32", "Unknown attribute " + name
backends.cuda.matmul = Matmul()
"""
    )
    python = make_venv(tmp_path / "venv", torch=False, files={"torch/__init__.py": old})
    assert shown(python, "-c", SHOW) == ON


def test_nothing_is_imported_for_a_program_that_imports_nothing(python: Path) -> None:
    code = (
        "import sys; print(sorted({'torch', 'numpy', 'random', 'typing', 'importlib.util'} & {*sys.modules}))"
    )
    assert run(python, "-c", code, env=image_environment(REPROBUILD_SEED="1")).stdout == "[]\n"


def test_what_a_program_sets_itself_wins_also_over_a_reload(python: Path) -> None:
    code = "import importlib, torch; torch = importlib.reload(torch)" + SHOW
    # The stand-in is made anew by a reload; the hook must not come back.
    assert shown(python, "-c", code) == OFF


@pytest.mark.parametrize("probe", ["spec.origin.endswith('__init__.py')", "spec.loader.get_source('torch')"])
def test_looking_for_torch_imports_nothing(python: Path, probe: str) -> None:
    code = f"""
import importlib.util, sys
spec = importlib.util.find_spec("torch")
assert {probe}
assert "torch" not in sys.modules
"""
    assert shown(python, "-c", code + SHOW) == ON


def test_a_lazy_loader_gets_its_settings_when_it_loads(python: Path) -> None:
    lazy = """
import importlib.util, sys
spec = importlib.util.find_spec("torch")
spec.loader = importlib.util.LazyLoader(spec.loader)
torch = importlib.util.module_from_spec(spec)
sys.modules["torch"] = torch
spec.loader.exec_module(torch)
"""
    assert shown(python, "-c", lazy + SHOW) == ON


def test_another_finder_of_its_own_kind_does_not_get_in_its_way(python: Path) -> None:
    other = """
import importlib.util, sys
class Other:
    busy = False
    def find_spec(self, name, path=None, target=None):
        if name == "torch" and not self.busy:
            self.busy = True
            return importlib.util.find_spec(name)
sys.meta_path.insert(0, Other())
"""
    assert shown(python, "-c", other + SHOW) == ON


def test_an_import_that_fails_fails_as_ever_and_the_next_one_is_set_up(python: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open shared object file')")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
try:
    import torch
except OSError as error:
    assert "libcudart" in str(error)
sys.path.pop(0)
"""
    assert shown(python, "-c", code + SHOW) == ON


def test_torch_that_is_not_there_is_an_ordinary_import_error(tmp_path: Path) -> None:
    done = run(make_venv(tmp_path / "venv", torch=False), "-c", "import torch")
    assert "ModuleNotFoundError: No module named 'torch'" in done.stderr
    assert "reprobuild" not in done.stderr


def test_the_public_call_stands_in_for_a_private_one_that_is_gone(tmp_path: Path) -> None:
    files = {"torch/__init__.py": FAKE_TORCH.replace("_set_deterministic_algorithms=set_flag,", "")}
    python = make_venv(tmp_path / "venv", torch=False, files=files)
    assert shown(python, "-c", SHOW) == [[["public", True], ["fill", False]], *ON[1:]]


def test_an_error_in_the_hook_is_a_warning_and_the_import_goes_on(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=False, files={"torch/__init__.py": "here = True"})
    done = run(python, "-c", "import torch; print(torch.here)")
    assert done.returncode == 0
    assert done.stdout == "True\n"
    assert done.stderr.startswith("reprobuild: warning: torch is not set up for determinism: AttributeError")


# --- Seeds ---


def test_a_seed_reaches_torch_numpy_and_random_once(python: Path) -> None:
    code = """
import random, numpy.random, torch, json
import random as again
print(json.dumps([random.random() == random.Random(7).random(), numpy.random.log, torch.log]))
"""
    assert shown(python, "-c", code, REPROBUILD_SEED="7") == [True, [7], [*ON[0], ["seed", 7]]]


def test_with_a_seed_by_rank_each_rank_has_its_own_whoever_started_it(python: Path) -> None:
    code = "import numpy.random, json; print(json.dumps(numpy.random.log))"

    def seed(**variables: str) -> object:
        environ = {"REPROBUILD_SEED": "7", "REPROBUILD_SEED_BY_RANK": "1", **variables}
        return shown(python, "-c", code, **environ)

    assert seed() == seed(RANK="0", SLURM_PROCID="3") == seed(LOCAL_RANK="0") == [7]
    second = (7 + 0x9E3779B9) % 2**32
    started = ({"RANK": "1"}, {"OMPI_COMM_WORLD_RANK": "1"}, {"SLURM_PROCID": "1"}, {"LOCAL_RANK": "1"})
    assert [seed(**each) for each in started] == [[second]] * 4
    assert seed(LOCAL_RANK="1", NODE_RANK="1") not in ([7], [second])
    assert shown(python, "-c", code, REPROBUILD_SEED="7", RANK="1") == [7]


def test_without_a_seed_nothing_is_seeded(python: Path) -> None:
    code = "import random, numpy.random, json; print(json.dumps([numpy.random.log, random.random()]))"
    first, second = (shown(python, "-c", code) for _ in range(2))
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert first[0] == []
    assert first[1] != second[1]


@pytest.mark.parametrize("seed", ["x", "-1", "4294967296"])
def test_a_seed_that_is_none_is_a_warning_and_the_settings_are_made(python: Path, seed: str) -> None:
    done = run(python, "-c", SHOW, env=image_environment(REPROBUILD_SEED=seed))
    assert json.loads(done.stdout) == ON
    assert "REPROBUILD_SEED is not used: ValueError" in done.stderr


# --- torch itself ---

STATE = """
def state():
    import torch
    c = torch.backends.cudnn
    matmul = torch.backends.cuda.matmul
    flag = torch.are_deterministic_algorithms_enabled()
    warn = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    return [flag, warn, c.deterministic, c.benchmark, matmul.allow_tf32, filled, torch.initial_seed()]
"""


@pytest.mark.slow
@pytest.mark.torch
def test_every_kind_of_process_has_the_settings(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    script = tmp_path / "script.py"
    script.write_text(
        STATE
        + """
class Data:
    def __len__(self): return 2
    def __getitem__(self, index): return str(state()[:-1])

def main():
    import json, multiprocessing, torch
    found = {"main": state()}
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            found[method] = pool.apply(state)
    found["dataloader"] = next(iter(torch.utils.data.DataLoader(Data(), num_workers=1)))
    torch.use_deterministic_algorithms(False)
    found["overridden"] = state()[0]
    print(json.dumps(found))

if __name__ == "__main__":
    main()
"""
    )
    done = run(python, script, env=image_environment(REPROBUILD_SEED="7"))
    assert "reprobuild" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr
    expected = [True, False, True, False, False, False, 7]
    assert json.loads(done.stdout) == {
        **dict.fromkeys(("main", "fork", "spawn", "forkserver"), expected),
        "dataloader": [str(expected[:-1])],
        "overridden": False,
    }


@pytest.mark.slow
@pytest.mark.torch
def test_seeded_numbers_repeat_in_fresh_processes(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    code = "import torch, numpy, random; print(torch.rand(3).tolist(), numpy.random.rand(3), random.random())"
    first, second = (
        run(python, "-I", "-c", code, env=image_environment(REPROBUILD_SEED="7")) for _ in range(2)
    )
    assert first.stdout == second.stdout != ""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(
    "program",
    [
        "cudnn.allow_tf32, matmul.allow_tf32",
        "cudnn.allow_tf32 = matmul.allow_tf32 = True; cudnn.allow_tf32, matmul.allow_tf32",
        "torch.set_float32_matmul_precision('high'); matmul.allow_tf32",
        "cudnn.conv.fp32_precision = 'tf32'; cudnn.allow_tf32",  # raised while the hook set the old names
        "cudnn.fp32_precision = 'tf32'; cudnn.allow_tf32",
        "cudnn.conv.fp32_precision = matmul.fp32_precision = 'ieee'; cudnn.rnn.fp32_precision",
        "cudnn.flags(enabled=True).__enter__()",
    ],
)
def test_programs_with_either_set_of_names_for_tf32_run(tmp_path: Path, program: str) -> None:
    python = make_venv(tmp_path / "venv", torch=True)
    code = "import torch; cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul\n"
    code += "assert not torch.utils.deterministic.fill_uninitialized_memory\n" + program
    done = run(python, "-c", code, env=image_environment())
    assert done.returncode == 0, done.stderr
