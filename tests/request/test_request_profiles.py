from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from reprobuild.errors import RequestError
from reprobuild.in_image.selftest.names import FORBIDDEN
from reprobuild.request.image_layout import OWN_FOLDER, SITE_PREFIX
from reprobuild.request.model import Request
from reprobuild.request.profiles import LIBRARY_THREADS, surroundings, variables
from support.profiled import STRICT
from support.strategies import requests


def test_strict() -> None:
    assert variables(STRICT) == {
        **dict.fromkeys(LIBRARY_THREADS, "1"),
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "MKL_CBWR": "AUTO",
        "MKL_DYNAMIC": "FALSE",
        "MKL_NUM_THREADS": "1",
        "NCCL_ALGO": "Ring",
        "NCCL_PROTO": "Simple",
        "NVIDIA_TF32_OVERRIDE": "0",
        "OMP_DYNAMIC": "FALSE",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "REPROBUILD_PROFILE": "strict",
        "TORCHINDUCTOR_DETERMINISTIC": "1",
        "TRITON_CACHE_AUTOTUNING": "1",
        "TRITON_F32_DEFAULT": "ieee",
    }


def test_portable_fixes_the_instruction_sets_too() -> None:
    portable = variables(replace(STRICT, profile="portable"), numpy="2.4.6")
    assert dict(portable.items() - variables(STRICT, numpy="2.4.6").items()) == {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "REPROBUILD_PROFILE": "portable",
    }


@pytest.mark.parametrize(
    ("numpy", "named", "not_named"),
    [
        ("1.26.4", "AVX512_KNL", "AVX512_SPR"),
        ("2.2.6", "AVX512_ICL", "AVX512_SPR"),
        ("2.3.0", "AVX512_SPR", "X86_V3"),
        ("2.4.0", "X86_V3", "AVX512F"),
        ("3.0", "X86_V4", "SSSE3"),
    ],
)
def test_portable_names_numpy_s_features_as_its_version_does(numpy: str, named: str, not_named: str) -> None:
    found = variables(replace(STRICT, profile="portable"), numpy)["NPY_DISABLE_CPU_FEATURES"].split()
    assert named in found
    assert not_named not in found


def test_memory_is_filled_where_the_request_asks_for_it() -> None:
    assert "REPROBUILD_FILL" not in variables(STRICT)
    assert variables(replace(STRICT, fill=True))["REPROBUILD_FILL"] == "1"


def test_threads_reach_every_library() -> None:
    four = variables(replace(STRICT, threads=4))
    assert {name for name, value in four.items() if value == "4"} == {
        "MKL_NUM_THREADS",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        *LIBRARY_THREADS,
    }


def test_a_request_may_choose_the_threads_of_a_library_and_not_those_of_openmp() -> None:
    def environment_of(name: str) -> Request:
        return Request.from_dict({"name": "a", "cuda": "12.1", "environment": {name: "8"}}, "a.toml")

    assert variables(environment_of("RAYON_NUM_THREADS"))["RAYON_NUM_THREADS"] == "8"
    with pytest.raises(RequestError, match="reprobuild sets OMP_NUM_THREADS itself"):
        environment_of("OMP_NUM_THREADS")


@given(requests)
def test_variables_are_sorted_and_none_is_forbidden_or_set_twice(request: Request) -> None:
    found = variables(request)
    assert list(found) == sorted(found)
    assert not found.keys() & set(FORBIDDEN)
    assert not found.keys() & surroundings().keys()


def test_surroundings_put_the_environment_first_and_name_the_constraints() -> None:
    found = surroundings()
    assert list(found) == sorted(found)
    assert found["PATH"].split(":")[0] == f"{SITE_PREFIX}/bin"
    assert found["PIP_CONSTRAINT"] == found["UV_CONSTRAINT"] == f"{OWN_FOLDER}/constraints.txt"
