from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprobuild.host.descriptors import FOLDER, closing_descriptor


def test_a_descriptor_is_closed_whatever_the_block_raises(tmp_path: Path) -> None:
    with pytest.raises(KeyError), closing_descriptor(os.open(tmp_path, FOLDER)) as descriptor:
        raise KeyError
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
