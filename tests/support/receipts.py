"""A receipt for tests, and its table."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from reprobuild.twice.receipt.model import Receipt, parse_receipt
from reprobuild.twice.receipt.program_files import line_digests

TRAIN = b"import torch\nprint(torch.rand(1))\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def table(**changed: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "receipt": 1,
        "by": "run",
        "made-with": "reprobuild 0.1.0",
        "image": {
            "name": "a:1",
            "digest": "sha256:" + "1" * 64,
            "engine": "oci",
            "lock": "sha256:" + "2" * 64,
        },
        "command": ["python3", "train.py"],
        "workdir": "/code",
        "user": "0:0",
        "network": False,
        "gpu": False,
        "folders": [{"destination": "/code", "source": ".", "writable": True}],
        "variables": {"SEED": "7", "HF_TOKEN": None},
        "code": {"commit": "a" * 40, "dirty": False, "tree": "b" * 64},
        "inputs": [
            {
                "path": "/code/train.py",
                "size": len(TRAIN),
                "sha256": sha256(TRAIN),
                "lines": line_digests(TRAIN),
            }
        ],
        "beside": [{"path": "/code/data.bin", "size": 3, "sha256": sha256(b"\0ab")}],
        "beside-whole": True,
        "machine": {"architecture": "x86_64", "processor": "A"},
        "steps": [
            {
                "process": "train.py",
                "count": 2,
                "moments": [["step 0 (SGD)", "0" * 16], ["step 1 (SGD)", "1" * 16]],
            }
        ],
        "status": 0,
        "stdout": "c" * 64,
        "outputs": [{"path": "/code/last.pt", "size": 10, "sha256": "d" * 64, "meaning": "e" * 64}],
        "verdict": "",
        "notes": [],
    }
    return found | changed


def receipt(**changed: Any) -> Receipt:
    return parse_receipt(json.dumps(table(**changed)).encode(), "a.json")
