"""The hash that runs on a GPU, here on the processor, against the definition in its docstring."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import struct
import subprocess
from pathlib import Path

import pytest
from torch_python import need_torch, torch_python

from reprobuild import in_image

pytestmark = [pytest.mark.slow, pytest.mark.torch]

PROGRAM = """
import json, sys, torch
sys.path.insert(0, sys.argv[1])
from twice import device_hash
device_hash._AT_ONCE = 40_000
given = json.load(sys.stdin)
tensors = [torch.frombuffer(bytearray.fromhex(text), dtype=getattr(torch, kind)) for kind, text in given]
first = tensors[0]
items = [item for shape in ((2, -1), (-1, 2)) for item in device_hash.of_items(torch, first.view(shape))]
print(json.dumps([
    [digest.hex() for digest in device_hash.of_tensors(torch, tensors)],
    [device_hash.of_tensors(torch, [tensor])[0].hex() for tensor in tensors],  # each in words of its own
    [item.hex() for item in items],
]))
"""
WORD = (1 << 64) - 1
WIDTHS = {"float32": 4, "int64": 8, "uint8": 1, "bfloat16": 2, "complex64": 8}


def mix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def expected(kind: str, data: bytes) -> str:
    return of_rows(f"device torch.{kind}({len(data) // WIDTHS[kind]},)".encode(), data)


def of_rows(before: bytes, data: bytes) -> str:
    found = hashlib.sha256(before)
    padded = data + bytes(-len(data) % 8192)
    for start in range(0, len(padded), 8192):
        first = second = 0
        for i, word in enumerate(struct.unpack("<1024Q", padded[start : start + 8192])):
            key = mix((i + 1) * 0x9E3779B97F4A7C15 & WORD)
            mixed = mix(word ^ key)
            first, second = first + mixed & WORD, second + mixed * (key | 1) & WORD
        found.update(struct.pack("<QQ", first, second))
    return found.hexdigest()


def test_it_is_as_it_is_defined_and_blind_to_nothing(tmp_path: Path) -> None:
    need_torch()
    data = random.Random(1).randbytes(24_000)
    swapped = data[8:16] + data[:8] + data[16:]
    rows = data[8192:16384] + data[:8192] + data[16384:]
    negative = data[:3] + bytes([data[3] ^ 128]) + data[4:]
    given = [
        *(("float32", each) for each in (data, swapped, rows, negative, data[:4], data[:-4], bytes(64))),
        *(("float32", bytes(8192)), ("float32", bytes(8196)), ("float32", struct.pack("<f", 2.0) * 100)),
        *(("int64", data), ("uint8", data[:13]), ("bfloat16", data[:98]), ("complex64", data[:80])),
    ]
    done = subprocess.run(
        [torch_python(), "-c", PROGRAM, str(Path(in_image.__file__).parent)],
        input=json.dumps([(kind, content.hex()) for kind, content in given]),
        capture_output=True,
        text=True,
        check=True,
    )
    digests, alone, items = json.loads(done.stdout)
    assert digests == alone == [expected(kind, content) for kind, content in given]
    assert len(set(digests)) == len(given)
    halves, pairs = ([data[at : at + size] for at in range(0, len(data), size)] for size in (12_000, 8))
    assert items == [of_rows(b"", part) for part in (*halves, *pairs)]


ELSEWHERE = """
import json, sys, torch
sys.path.insert(0, sys.argv[1])
from twice import device_hash, digests

class Elsewhere(torch.Tensor):
    @property
    def device(self):
        return torch.device("cuda", 1)

here = torch.arange(2_000.0)
there, other = here.clone().as_subclass(Elsewhere), (here + 1).as_subclass(Elsewhere)
hashed = device_hash.of_tensors(torch, [here, here + 1])
device_hash._keys["cuda:1"] = device_hash._keys["cpu"]
whole, each = digests.of_group(torch, [here, there, None, other])
torch.cuda.is_initialized = lambda: True
torch.cuda.get_rng_state_all = lambda: [torch.zeros(16, dtype=torch.uint8), torch.ones(16, dtype=torch.uint8)]
torch.cuda.is_current_stream_capturing = lambda: False
generators = digests.of_generators(torch)
last = digests.of_tensor(torch, here).hex(), digests.of_tensor(torch, there).hex()
torch.cuda.is_current_stream_capturing = lambda: True
captured = digests.of_group(torch, [here, there])[1], sorted(digests.unread)
digests.unread.clear()
print(json.dumps([
    each,
    [one.hex() for one in hashed],
    *last, generators, sorted(digests.unread), *captured,
]))
"""


def test_tensors_and_generators_of_a_gpu_take_its_way(tmp_path: Path) -> None:
    """Here they only say that they are elsewhere."""
    need_torch()
    command = [torch_python(), "-c", ELSEWHERE, str(Path(in_image.__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    each, hashed, here, there, generators, unread, captured, reasons = json.loads(done.stdout)
    digests = [base64.b64decode(each)[at : at + 8].hex() for at in range(0, 32, 8)]
    assert digests == [here[:16], hashed[0][:16], "00" * 8, hashed[1][:16]]
    assert (there, unread) == (hashed[0], [])
    assert here != there
    assert generators["cuda:0"] != generators["cuda:1"]
    first, second = base64.b64decode(captured)[:8].hex(), base64.b64decode(captured)[8:].hex()
    assert (first, reasons) == (here[:16], ["CUDA graph"])  # nothing is asked of the GPU while it captures
    assert second not in (hashed[0][:16], "00" * 8)
