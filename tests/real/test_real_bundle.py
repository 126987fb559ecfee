"""A bundle of the CPU image: its reprobuild is installed and builds the same digest, without a network."""

from __future__ import annotations

import json

import pytest

from support.bench import Bench

pytest_plugins = ["support.shared"]
pytestmark = pytest.mark.slow


def test_a_bundle_gives_the_same_digest_in_an_empty_home_without_a_network(bench: Bench, digest: str) -> None:
    bundle = bench.folder / "torch.bundle.tar"
    try:
        bench.run("bundle", bench.lock, "-o", bundle.name)
        said, _ = bench.run("bundle", "--check", bundle.name, "--json")
        (built,) = json.loads(said)["images"]
        assert (built["digest"], built["digest_here"]) == (digest, digest)
        with bundle.open("r+b") as file:  # and one byte of it changed, in the last file
            file.seek(-20_000, 2)
            old = file.read(1)
            file.seek(-20_000, 2)
            file.write(bytes([old[0] ^ 1]))
        env = {"REPROBUILD_HOME": str(bench.folder / "empty")}
        _, err = bench.run("image", "--bundle", bundle.name, status=6, env=env)
        assert "its SHA-256 is" in err
    finally:
        bundle.unlink(missing_ok=True)
