"""A real image, sabotaged in one way after the other: each gets no name, and the check that guards is named.

The image is PyTorch for the CPU. A sabotage is one more layer on top of it, or
another variable.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reprobuild.engines.embedded import unpacked
from reprobuild.engines.tag import tag
from reprobuild.errors import SelfTestError
from reprobuild.host import sandbox
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.oci.store import ImageStore
from reprobuild.render.own_files import selftest_files
from reprobuild.selftest.report import SelfTestReport
from reprobuild.selftest.run import run_selftest
from support.altered import AlteredImage
from support.bench import Bench

pytest_plugins = ["support.shared"]

SITE = "/opt/venv/lib/python3.11/site-packages"
NAME = "sabotaged/torch:1"
CONSOLE = Console(quiet=True)


@dataclass(frozen=True)
class Sabotage:
    """What is broken, and what must notice: ``check`` is among the failed ones."""

    check: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    code: str = ""
    """Python that every interpreter of the test runs at its start, with torch and numpy imported."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files by path; text that starts with + is appended."""


VARIABLES = {
    "threads unset": Sabotage("setting-threads", {"OMP_NUM_THREADS": None}),
    "threads of MKL differ": Sabotage("setting-threads", {"MKL_NUM_THREADS": "2"}),
    "threads may change": Sabotage("setting-threads", {"OMP_DYNAMIC": "TRUE"}),
    "hash seed unset": Sabotage("setting-hash-seed", {"PYTHONHASHSEED": None}),
    "workspace unset": Sabotage("setting-cublas-workspace", {"CUBLAS_WORKSPACE_CONFIG": None}),
    "MKL unset": Sabotage("setting-profile", {"MKL_CBWR": None}),
    "another profile": Sabotage("setting-profile", {"REPROBUILD_PROFILE": "portable"}),
    "TF32 variable unset": Sabotage("setting-tf32", {"NVIDIA_TF32_OVERRIDE": None}),
    "forbidden variable": Sabotage("setting-forbidden", {"TORCHINDUCTOR_MAX_AUTOTUNE": "1"}),
    "hook turned off": Sabotage("setting-hook", {"REPROBUILD_DETERMINISM": "off"}),
    "seed that nothing takes": Sabotage(
        "setting-seed", {"REPROBUILD_SEED": "7"}, files={f"{SITE}/reprobuild.pth": ""}
    ),
}
FILES = {
    "hook removed": Sabotage("setting-hook", files={f"{SITE}/reprobuild.pth": ""}),
    "torch edited": Sabotage("setting-files", files={f"{SITE}/torch/functional.py": "+# changed"}),
    "torch does not import": Sabotage("imports", files={f"{SITE}/torch/lib/libtorch_cpu.so": "no library"}),
    "constraints of another lock": Sabotage(
        "setting-versions", files={"/opt/reprobuild/constraints.txt": "numpy==1.0.0"}
    ),
}
CODE = {
    "flag off": Sabotage("setting-deterministic", code="torch._C._set_deterministic_algorithms(False)"),
    "flag only warns": Sabotage(
        "setting-deterministic", code="torch._C._set_deterministic_algorithms(True, warn_only=True)"
    ),
    "flag without effect": Sabotage(
        "raises",
        code="""
torch._C._set_deterministic_algorithms(False)
torch._C._set_deterministic_algorithms = lambda *_, **__: None
torch.are_deterministic_algorithms_enabled = lambda: True
""",
    ),
    "benchmark on": Sabotage("setting-cudnn", code="torch.backends.cudnn.benchmark = True"),
    "TF32 on": Sabotage("setting-tf32", code="torch.backends.cuda.matmul.allow_tf32 = True"),
    "threads random": Sabotage("setting-threads", code="torch.set_num_threads(2 + os.getpid() % 2)"),
    "products less precise": Sabotage(
        "precision",
        code="""
real = torch.matmul
def matmul(a, b):
    narrow = a.dtype == torch.float32
    return real(a.bfloat16().float(), b.bfloat16().float()) if narrow else real(a, b)
torch.matmul = matmul
""",
    ),
    "a convolution turns benchmark on": Sabotage(
        "setting-kept",
        code="""
real = torch.nn.functional.conv2d
def conv2d(*arguments, **options):
    torch.backends.cudnn.benchmark = True
    return real(*arguments, **options)
torch.nn.functional.conv2d = torch.nn.modules.conv.F.conv2d = conv2d
""",
    ),
    "seed from the clock": Sabotage(
        "torch-seed",
        code="""
real = torch.manual_seed
torch.manual_seed = lambda _: real(time.time_ns())
""",
    ),
    "random is not seeded": Sabotage("python-seed", code="random.seed = lambda *_: None"),
    "NumPy is not seeded": Sabotage("numpy-seed", code="numpy.random.seed = lambda *_: None"),
    "operation that hangs on the process": Sabotage(
        "bmm",
        code="""
real = torch.bmm
torch.bmm = lambda a, b: real(a, b) * (1 + 2.0 ** -23 * (1 + os.getpid() % 1000))
""",
    ),
    "operation that is off in one call of twenty": Sabotage(
        "bmm",
        code="""
real, luck = torch.bmm, random.Random(1)
torch.bmm = lambda a, b: real(a, b) * (1 + 2.0 ** -23 * (luck.random() < 0.05))
""",
    ),
    "subnormals turned into zero": Sabotage("subnormals", code="torch.set_flush_denormal(True)"),
    "operation that drifts": Sabotage(
        "index-add",
        code="""
real, calls = torch.Tensor.index_add, iter(range(1000))
torch.Tensor.index_add = lambda *a: real(*a) * (1 + 2.0 ** -23 * next(calls))
""",
    ),
    "operation that crashes": Sabotage("fft", code="torch.fft.rfft = lambda *_: os.abort()"),
    "other random numbers": Sabotage(
        "golden-streams",
        code="""
real = torch.rand
torch.rand = lambda *a, **k: real(*a, **k).flip(0)
""",
    ),
    "workers share their numbers": Sabotage(
        "dataloader-workers",
        code="""
real = torch.rand
def rand(*arguments, **options):
    if torch.utils.data.get_worker_info() is None:
        return real(*arguments, **options)
    return torch.tensor(0.5, dtype=torch.float64)
torch.rand = rand
""",
    ),
    "sampler without epoch": Sabotage(
        "distributed-sampler", code="torch.utils.data.DistributedSampler.set_epoch = lambda *_: None"
    ),
    "optimizer with noise": Sabotage(
        "train-adamw",
        code="""
real = torch.optim.AdamW.step
def step(self, *arguments):
    real(self, *arguments)
    with torch.no_grad():
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.mul_(1 + 2.0 ** -23 * (time.time_ns() % 1000))
torch.optim.AdamW.step = step
""",
    ),
    "gradients are not shared": Sabotage(
        "ranks-gloo", code="torch.nn.parallel.DistributedDataParallel = lambda module: module"
    ),
    "a CUDA library of another place": Sabotage(
        "one-cuda-copy",
        code="""
path = f"/tmp/{os.getpid()}/libcudnn.so.9"
os.makedirs(os.path.dirname(path))
shutil.copy(importlib.util.find_spec("_bz2").origin, path)
ctypes.CDLL(path)
""",
    ),
    "a second CUDA library": Sabotage(
        "one-cuda-copy",
        code="""
for folder in ("one", "two"):
    path = f"/tmp/{folder}-{os.getpid()}/libcudart.so.12"
    os.makedirs(os.path.dirname(path))
    shutil.copy(importlib.util.find_spec("_bz2").origin, path)
    ctypes.CDLL(path)
""",
    ),
}
SABOTAGES = VARIABLES | FILES | CODE
CORE = {"threads unset", "torch edited", "operation that drifts"}
"""One of each kind; the others are in the stage ``slow``."""
WHOLE = ("hook removed", "operation that crashes")
"""These run the whole self-test, and no name is given; the others run the check that guards alone."""

START = """
import sys
if "--child" in sys.orig_argv:
    import ctypes, importlib.util, os, random, shutil, time
    import numpy, torch, torch.distributed, torch.nn.parallel, torch.utils.data
    exec({code!r})
"""


@pytest.fixture(scope="module")
def home(bench: Bench) -> Home:
    return Home(bench.home)


@pytest.fixture
def image(home: Home, digest: str, tmp_path: Path) -> AlteredImage:
    return AlteredImage(home, digest, tmp_path)


def refused(image: AlteredImage) -> SelfTestReport:
    """Run the whole self-test; it must fail, and the image must get no name."""
    report = run_selftest(image, program=selftest_files(), gpu="off")
    assert not report.passed
    images = ImageStore(Host(image.home, CONSOLE))
    before = [each.names for each in images.images()]
    with pytest.raises(SelfTestError) as caught:
        tag(images, image.digest, NAME, report)
    assert [each.names for each in images.images()] == before
    for check in report.failed:
        assert check.name in caught.value.message
    return report


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.core if n in CORE else pytest.mark.slow) for n in SABOTAGES],
)
def test_a_sabotaged_image_is_refused_by_name(name: str, image: AlteredImage) -> None:
    sabotage = SABOTAGES[name]
    image.env = sabotage.env
    for path, text in sabotage.files.items():
        image.write(path, image.read(path) + text[1:] if text.startswith("+") else text)
    if sabotage.code:
        image.write(f"{SITE}/zz_sabotage.pth", "import zz_sabotage\n")
        image.write(f"{SITE}/zz_sabotage.py", START.format(code=sabotage.code))
    if name in WHOLE:
        report = refused(image)
    else:
        report = run_selftest(image, program=selftest_files(), gpu="off", only=[sabotage.check])
    assert sabotage.check in {check.name for check in report.failed}, report.failures()


@pytest.mark.slow
def test_a_wheel_swapped_in_is_refused_by_name(image: AlteredImage, home: Home, tmp_path: Path) -> None:
    """Done as a derived image would, against the constraints: pip in the image puts in an older package."""
    if os.geteuid() != 0:
        pytest.skip("files that overlayfs marks as gone can be copied by root alone")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(tmp_path / "wheels"),
    ]
    subprocess.run([*pip, "mpmath==1.2.1"], check=True, stdout=subprocess.DEVNULL)
    install = "pip install --no-index --no-deps --find-links /wheels mpmath==1.2.1"
    task = sandbox.Task(
        argv=["/bin/sh", "-ec", install],
        env={"PATH": "/opt/venv/bin:/usr/bin:/bin"},
        cwd="/",
        binds=[sandbox.Bind(source=tmp_path / "wheels", destination="/wheels")],
        writable=True,
    )
    with ExitStack() as stack:
        layers = stack.enter_context(
            unpacked(Host(home, CONSOLE), ImageStore(Host(home, CONSOLE)), image.digest)
        )
        scratch = stack.enter_context(home.scratch("swap"))
        done = sandbox.run(scratch, layers, task, timeout=120)
        assert done.returncode == 0, done.stderr
        subprocess.run(["cp", "-a", f"{scratch}/upper/.", str(image.layer)], check=True)
    report = refused(image)
    (check,) = [check for check in report.failed if check.name == "setting-versions"]
    assert [(line.what, line.got) for line in check.detail] == [("mpmath", "1.2.1")]


@pytest.mark.slow
def test_the_clean_image_passes(image: AlteredImage) -> None:
    report = run_selftest(image, program=selftest_files(), gpu="off")
    assert report.failures() == []
    names = {check.name: check.status for check in report.checks}
    expected = {"setting-files", "setting-versions", "golden-streams"}
    # On one processor the control has nothing to race.
    expected |= {"control"} if len(os.sched_getaffinity(0)) > 1 else set()
    assert {names[check] for check in expected} == {"passed"}
