"""What an image's configuration puts before a user's program, or around it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reprobuild.oci.tar_writer import Record
from reprobuild.render.image_config import image_config
from support.checked import checked, found
from support.locks import LOCK

PATH = image_config(LOCK).env["PATH"]


@pytest.mark.parametrize("path", ["/opt/mine", "/app/link", "."])
def test_a_program_that_path_finds_before_the_locked_one(path: str) -> None:
    wrapper = Record("opt/mine/python3", "file", 0o755, "w")
    link = Record("app/link", "link", 0o777, "/opt/mine")
    env: dict[str, str | None] = {"PATH": f"{path}:{PATH}"}
    assert found(wrapper, link, env=env, WorkingDir="/opt/mine") == [("/opt/mine/python3", "shadows")]
    assert found(replace(wrapper, path="opt/mine/train"), link, env=env, WorkingDir="/opt/mine") == []
    assert found(wrapper) == []


def test_a_locked_folder_of_programs_that_comes_later() -> None:
    local = Record("usr/local/bin/bash", "file", 0o755, "x")
    assert found(local) == [("/usr/local/bin/bash", "shadows")]
    assert found(Record("usr/local/bin/mine", "file", 0o755, "x")) == []


@pytest.mark.parametrize(
    "name",
    [
        "BASH_ENV",
        "BASH_FUNC_python3%%",
        "ONEDNN_DEFAULT_FPMATH_MODE",
        "NPY_DISABLE_CPU_FEATURES",
        "OMP_SCHEDULE",
        "MKL_ENABLE_INSTRUCTIONS",
        "PYTHONOPTIMIZE",
        "PYTHONSTARTUP",
        "LD_BIND_NOW",
        "TORCH_DEVICE_BACKEND_AUTOLOAD",
    ],
)
def test_a_variable_that_a_locked_program_reads(name: str) -> None:
    assert found(env={name: "1"}) == [(f"Env {name}", "setting")]


@pytest.mark.parametrize("name", ["PYTHONUNBUFFERED", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "MINE", "HOME"])
def test_a_variable_that_a_team_may_set(name: str) -> None:
    assert found(env={name: "1"}) == []


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("OnBuild", ["RUN x"], "OnBuild"),
        ("Shell", ["/bin/x", "-c"], "Shell"),
        ("Shell", ["env", "OMP_NUM_THREADS=7", "bash", "-c"], "Shell"),
        ("Shell", ["bash", "--rcfile", "/opt/mine", "-c"], "Shell"),
        ("Shell", ["bash", "-O", "x", "-c"], "Shell"),
        ("Shell", [], None),
        ("Shell", ["bash", "-o", "pipefail", "-ec"], None),
        ("Shell", ["/usr/bin/bash", "--login", "-c"], None),
        ("Volumes", {"/opt/venv/lib": {}}, "Volumes /opt/venv/lib"),
        ("Volumes", {"/": {}}, "Volumes /"),
    ],
)
def test_a_setting_that_rules_what_starts_from_the_image(name: str, value: Any, path: str | None) -> None:
    config: dict[str, Any] = {name: value}
    assert found(**config) == ([(path, "setting")] if path else [])


def test_what_departs_is_not_called_harmless_too() -> None:
    whole = checked(
        Volumes={"/opt/venv": {}, "/data": {}}, env={"LD_AUDIT": "/x.so", "MKL_CBWR": "AVX2", "MINE": "1"}
    )
    assert {each.path for each in whole.differences} == {"Volumes /opt/venv", "Env LD_AUDIT", "Env MKL_CBWR"}
    assert whole.beside == {"Env MINE": "1"}


def test_a_setting_that_reaches_no_program_is_told_beside() -> None:
    harmless: dict[str, Any] = {
        "Healthcheck": {"Test": ["CMD", "x"]},
        "Volumes": {"/data": {}, "/usr/src/app": {}},
    }
    assert found(**harmless) == []
    beside = checked(**harmless, env={"MINE": "1", "LANG": "de_DE.UTF-8"}).beside
    assert beside == {
        "Healthcheck": '{"Test": ["CMD", "x"]}',
        "Volumes": '{"/data": {}, "/usr/src/app": {}}',
        "Env MINE": "1",
        "Env LANG": "de_DE.UTF-8",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENV", "/app/rc"),
        ("LANG", "de_DE.ISO-8859-1"),
        ("OPENSSL_CONF", "/app/o.cnf"),
        ("INTEL_LIBITTNOTIFY64", "/app/x.so"),
        ("CXX", "/app/g++"),
        ("CUDA_HOME", "/app"),
        ("NVCC_APPEND_FLAGS", "--use_fast_math"),
        ("PYTHONWARNINGS", "ignore::evil.Category"),
        ("PYTHONWARNINGS", "error,ignore:x: evil.deep.Category :torch:3"),
        ("PYTHON_CPU_COUNT", "3"),
        ("NVTX_INJECTION64_PATH", "/opt/evil.so"),
        ("AOT_INDUCTOR_ENABLE_LTO", "1"),
        ("PYTHON_PRESITE", "evil"),
    ],
)
def test_a_variable_is_judged_by_its_value_too(name: str, value: str) -> None:
    assert found(env={name: value}) == [(f"Env {name}", "setting")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENV", "production"),
        ("LANG", "en_US.UTF-8"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
        ("TRITON_CACHE_DIR", "/tmp/triton"),
        ("NVIDIA_VISIBLE_DEVICES", "0"),
        ("CUDNN_VERSION", "9"),
        ("PYTHONWARNINGS", "ignore:a.b:UserWarning:torch.nn,error"),
        ("PYTHON_VERSION", "3.11.2"),
    ],
)
def test_a_variable_that_teams_set(name: str, value: str) -> None:
    assert found(env={name: value}) == []


def test_a_folder_of_compiled_code_that_the_image_fills() -> None:
    kernel = Record("opt/cache/aa/x.so", "file", 0o644, "x")
    assert found(kernel, env={"TORCHINDUCTOR_CACHE_DIR": "/opt/cache"}) == [
        ("Env TORCHINDUCTOR_CACHE_DIR", "setting")
    ]


@pytest.mark.parametrize("name", ["LANG", "NVIDIA_VISIBLE_DEVICES"])
def test_a_variable_that_a_team_may_change_and_not_remove(name: str) -> None:
    assert found(env={name: None}) == [(f"Env {name}", "setting")]
