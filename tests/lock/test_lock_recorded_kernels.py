"""Records of kernels, and the torch that a lock has."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reprobuild.lock.recorded_kernels import unusable_records
from reprobuild.request.kernels import Kernels
from support.locks import LOCK


@pytest.mark.parametrize(
    ("recorded", "locked", "is_used"),
    [
        ("2.4.1+cu121", "2.4.1+cu121", True),
        ("2.4.1+cu121", "2.4.1", True),
        ("2.4.1+cu121", "2.4.1+cpu", False),
        ("2.11.0+cu130", "2.4.1", False),
        ("2.4.1", "2.4.10", False),
    ],
)
def test_a_record_of_another_torch_is_named(recorded: str, locked: str, is_used: bool) -> None:
    kind = {"torch": recorded, "commit": "c", "cpu": "AVX512", "gpus": ["NVIDIA H100"]}
    text = json.dumps({"schema": 1, "kind": kind, "choices": {}})
    python = [replace(each, version=locked) if each.name == "torch" else each for each in LOCK.python]
    request = replace(LOCK.request, kernels=Kernels(locked=True, choices=(text,)))
    found = list(unusable_records(replace(LOCK, request=request, python=python)))
    says = f"kernel-choices: the record for torch {recorded}, NVIDIA H100, CPU AVX512 has no effect, "
    assert [line.partition("since")[0] for line in found] == ([] if is_used else [says])
