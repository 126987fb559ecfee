"""Files of users and libraries: IPython's, Jupyter's, and compiled code that is taken as it lies there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reprobuild.oci.tar_writer import Record
from reprobuild.verify.check import Checked, check_tree, is_kept
from support.trees import SITE, image

KERNELS = "opt/venv/share/jupyter/kernels"
LAUNCH = ["-m", "ipykernel_launcher", "-f", "{connection_file}"]


def checked(path: str, text: str = "x", env: dict[str, str | None] | None = None, **config: Any) -> Checked:
    tree = image(Record(path, "file", 0o644, "x"), env=env)
    kept = {**tree.kept, path: text.encode()} if is_kept(path, len(text)) else tree.kept
    tree = image(Record(path, "file", 0o644, "x"), env=env, kept=kept, config={**tree.config, **config})
    return check_tree(tree, "x")


def kernel(*command: str, **more: Any) -> str:
    return json.dumps({"argv": command, "display_name": "Python 3 (ipykernel)", "language": "python", **more})


def test_what_runs_or_is_taken_in_place_of_what_would_be_compiled() -> None:
    paths = [
        *("root/.ipython/profile_default/startup/0.py", "root/.ipython/profile_default/startup/0.ipy"),
        *("root/.ipython/profile_x/ipython_config.py", "root/.ipython/profile_x/ipython_kernel_config.json"),
        *("etc/ipython/startup/0.py", "usr/local/etc/ipython/ipython_config.py"),
        "opt/scratch/torchinductor_app/x/a.so",  # of an image with TMPDIR=/opt/scratch
        *("tmp/torchinductor_root/x/a.so", "root/.triton/cache/x/a.so", "root/.nv/ComputeCache/0/x"),
        *(
            "root/.cache/torch_extensions/py311/a.so",
            "root/.cache/torch/kernels/x",
            "root/.cupy/kernel_cache/x",
        ),
        *("root/.cache/numba/x.nbi", f"{SITE}/torch/__pycache__/a.nbi", f"{SITE}/torch/__pycache__/a.nbc"),
        ".numba_config.yaml",
    ]
    tree = image(*(Record(path, "file", 0o644, "x") for path in paths))
    found = {(each.path, each.kind) for each in check_tree(tree, "x").differences}
    assert found == {(f"/{path}", "runs at start") for path in paths}


@pytest.mark.parametrize(
    ("variable", "path"),
    [("NUMBA_CACHE_DIR", "opt/n/a.nbi"), ("IPYTHONDIR", "opt/n/profile_default/startup/0.py")],
)
def test_a_folder_of_code_that_a_variable_names(variable: str, path: str) -> None:
    differences = checked(path, env={variable: "/opt/n"}).differences
    assert [each.path for each in differences] == [f"Env {variable}"]
    assert checked("opt/other", env={variable: "/opt/n"}).differences == []


def test_settings_of_numba_s_in_the_working_folder() -> None:
    path = "app/.numba_config.yaml"
    assert [each.path for each in checked(path, WorkingDir="/app").differences] == [f"/{path}"]
    assert checked(path).differences == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("usr/local/share/jupyter/kernels/python3/kernel.json", kernel("bash", "-c", "mine")),
        (f"{KERNELS}/python3/kernel.json", kernel("/opt/mine/python", *LAUNCH)),
        (f"{KERNELS}/python3/kernel.json", kernel("python", *LAUNCH, env={"OMP_NUM_THREADS": "7"})),
        (f"{KERNELS}/python3/kernel.json", kernel("python", *LAUNCH, env={"LD_PRELOAD": "/x"})),
        (f"{KERNELS}/Python3/kernel.json", kernel("python", "-c", "mine")),
        (f"{KERNELS}/python3/kernel.json", "{"),
        (f"{KERNELS}/python3/kernel.json", "[1]"),
    ],
)
def test_a_kernel_of_notebooks_that_is_not_the_locked_python(path: str, text: str) -> None:
    assert [(each.path, each.kind) for each in checked(path, text).differences] == [
        (f"/{path}", "runs at start")
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{KERNELS}/python3/kernel.json", kernel("python", *LAUNCH, metadata={"debugger": True})),
        (f"{KERNELS}/python3/kernel.json", kernel("/opt/venv/bin/python", "-Xfrozen_modules=off", *LAUNCH)),
        ("usr/share/jupyter/kernels/python3/kernel.json", kernel("/usr/bin/python3", *LAUNCH)),
        (f"{KERNELS}/ir/kernel.json", '{"argv": ["R"], "language": "R", "display_name": "R"}'),
        ("root/.local/share/jupyter/kernels/mine/kernel.json", kernel("/opt/venv/bin/python3", *LAUNCH)),
        ("opt/venv/etc/jupyter/jupyter_server_config.d/jupyterlab.json", "{}"),
        ("opt/venv/share/jupyter/lab/settings/overrides.json", "{}"),
        ("root/.ipython/profile_default/startup/README", "x"),
        ("root/.cache/huggingface/hub/x.safetensors", "x"),
        ("root/.cache/torch/hub/checkpoints/r.pth", "x"),
        ("root/.cache/pip/x", "x"),
        (f"{SITE}/librosa/__pycache__/a.nbi", "x"),
        ("opt/more/lib/python3.11/site-packages/a/__init__.py", "x"),
    ],
)
def test_what_notebooks_and_packages_of_one_s_own_bring(path: str, text: str) -> None:
    whole = checked(path, text)
    assert (whole.differences, whole.not_checked) == ([], [])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("root/.local/share/jupyter/kernels/mine/kernel.json", kernel("/opt/more/bin/python", *LAUNCH)),
        ("root/.jupyter/jupyter_server_config.py", "c.ServerApp.ip = '0.0.0.0'"),
        ("etc/jupyter/jupyter_notebook_config.py", "x"),
        ("usr/lib/x86_64-linux-gnu/gconv/gconv-modules.d/mine.conf", "x"),
    ],
)
def test_what_a_user_chooses_is_named_and_is_no_difference(path: str, text: str) -> None:
    whole = checked(path, text)
    assert whole.differences == []
    assert [each.startswith(f"/{path} (") for each in whole.not_checked] == [True]
