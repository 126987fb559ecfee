"""The hash of tensors on a GPU, computed there: only its result comes to the processor.

A tensor's bytes are padded with zeros to rows of `WORDS` words of 64 bits, little-endian. Word ``i`` of a row
becomes ``m_i = mix(w_i XOR k_i)``, with ``k_i = mix((i + 1) * GOLDEN)``; a row gives the sums of ``m_i`` and
of ``m_i * (k_i | 1)``, all modulo 2^64. ``mix`` is the finalizer of splitmix64, which is one to one. The
digest is SHA-256 over type, shape and the rows' sums in their order. So it depends on each bit and on its
place; integers add up to the same in any order of the device's threads. Two tensors that differ by accident
have the same digest with a chance of 2^-128; it is no defence against one who looks for such a pair.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

WORDS = 1024
GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_ROW = 8 * WORDS
_WORDS = {1: "uint8", 4: "int32", 8: "int64"}
"""Integer types by size in bytes; the widest that fits all tensors copies with the fewest threads."""
_AT_ONCE = 256 << 20
"""Bytes that are hashed at once; as many again, and again, are taken on the device meanwhile."""

_keys: dict[str, Any] = {}


def of_tensors(torch: Any, tensors: list[Any]) -> list[bytes]:
    """Return the digests of dense, contiguous tensors of one device."""
    found = []
    for part in _parts(tensors):
        kinds = [f"device {tensor.dtype}{tuple(tensor.shape)}".encode() for tensor in part]
        found += [
            hashlib.sha256(kind + sums).digest()
            for kind, sums in zip(kinds, _of_pieces(torch, [_flat(torch, t) for t in part]))
        ]
    return found


def of_items(torch: Any, tensor: Any) -> list[bytes]:
    """Return the digests of what a dense, contiguous tensor holds at each index of its first dimension."""
    items = tensor.shape[0]
    data = _flat(torch, tensor).view(torch.uint8).view(items, -1)
    rest = -data.shape[1] % _ROW
    if rest:
        data = torch.cat([data, data.new_zeros((items, rest))], dim=1)
    sums = _of_pieces(torch, [data.reshape(-1)])[0]
    size = len(sums) // items
    return [hashlib.sha256(sums[at : at + size]).digest() for at in range(0, len(sums), size or 1)]


def _of_pieces(torch: Any, pieces: list[Any]) -> list[bytes]:
    """Return the sums of the rows of each piece; they are computed together, and copied at once."""
    width = max(
        size
        for size in _WORDS
        if all(p.numel() * p.element_size() % size + p.data_ptr() % size == 0 for p in pieces)
    )
    word = getattr(torch, _WORDS[width])
    rows, words = [], []
    for piece in pieces:
        data = piece.view(word)
        rest = -data.numel() * width % _ROW
        rows.append((data.numel() * width + rest) // _ROW)
        words += [data, _zeros(data)[: rest // width]] if rest else [data]
    if not sum(rows):
        return [b""] * len(pieces)
    here = _sums(torch, torch.cat(words).view(torch.int64).view(-1, WORDS)).cpu().contiguous()
    # Not by NumPy, which need not be there.
    data = ctypes.string_at(here.data_ptr(), 8 * here.numel())
    ends = list(accumulate(16 * count for count in rows))
    return [data[end - 16 * count : end] for end, count in zip(ends, rows)]


def _parts(tensors: list[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    size = 0
    for tensor in tensors:
        bytes_ = tensor.numel() * tensor.element_size()
        if part and size + bytes_ > _AT_ONCE:
            yield part
            part, size = [], 0
        part.append(tensor)
        size += bytes_
    yield part


def _flat(torch: Any, tensor: Any) -> Any:
    flat = tensor.reshape(-1)
    return torch.view_as_real(flat).reshape(-1) if tensor.is_complex() else flat


def _zeros(like: Any) -> Any:
    key = f"zeros of {like.dtype} on {like.device}"
    if key not in _keys:
        _keys[key] = like.new_zeros(_ROW // like.element_size())
    return _keys[key]


def _sums(torch: Any, words: Any) -> Any:
    """Return the two sums of each row."""
    name = str(words.device)
    if name not in _keys:
        count = torch.arange(1, WORDS + 1, dtype=torch.int64, device=words.device)
        _keys[name] = _mix(count * _signed(GOLDEN))
    keys = _keys[name]
    mixed = _mix(words ^ keys)
    return torch.stack([mixed.sum(1), mixed.mul_(keys | 1).sum(1)], dim=1)


def _mix(z: Any) -> Any:
    z = (z ^ _shifted(z, 30)).mul_(_signed(_FIRST))
    z = z.bitwise_xor_(_shifted(z, 27)).mul_(_signed(_SECOND))
    return z.bitwise_xor_(_shifted(z, 31))


def _shifted(z: Any, by: int) -> Any:
    """Shift right as if without a sign."""
    return (z >> by).bitwise_and_((1 << (64 - by)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
