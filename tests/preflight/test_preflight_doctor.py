"""What a machine is found to have, with a stand-in for nvidia-smi that prints what the real one does."""

from __future__ import annotations
