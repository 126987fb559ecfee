"""An environment.yml locks as conda-lock itself locks it.

conda-lock starts conda for a plan. Here py-rattler makes it, since no conda is a package of PyPI's.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from support.commands import Call
from support.conda_channel import lock_of

pytestmark = pytest.mark.slow
pytest_plugins = ["support.commands", "support.family", "support.conda_channel"]

_CONDA = f"""#!{sys.executable}
import asyncio, json, os, sys
from reprobuild.programs import solve_conda
words = [word for word in sys.argv[2:] if word not in ("--dry-run", "--json", "--override-channels")]
channels, specs = [], []
while words:
    word = words.pop(0)
    if word in ("--prefix", "--channel"):
        value = words.pop(0)
        channels += [value] if word == "--channel" else []
    else:
        specs.append(word)
job = {{"specs": specs, "channels": channels, "alias": os.environ["CONDA_CHANNEL_ALIAS"]}}
job |= {{"platform": "linux-64", "virtual": [], "constraints": [], "exclude_newer": "", "keep": []}}
found = [solve_conda._package(each) for each in asyncio.run(solve_conda._solved(job))]
found = [each for each in found if not each["name"].startswith("__")]
links = [{{**p, "channel": "x", "dist_name": p["file_name"], "build_string": p["build"]}} for p in found]
print(json.dumps({{"success": True, "actions": {{"FETCH": found, "LINK": links}}}}), flush=True)
os._exit(0)
"""


@pytest.mark.usefixtures("forge")
def test_an_environment_yml_locks_as_conda_lock_would(call: Call, tmp_path: Path) -> None:
    program = tmp_path / "conda"
    program.write_text(_CONDA)
    program.chmod(0o755)
    virtual = tmp_path / "virtual.yml"
    virtual.write_text('subdirs:\n  linux-64:\n    packages:\n      __cuda: "12.1"\n      __glibc: "2.36"\n')
    names = tmp_path / "names.json"
    names.write_text("{}")
    lock = tmp_path / "lock.yml"
    command = [Path(sys.executable).with_name("conda-lock"), "lock", "--file", "environment.yml"]
    command += ["--conda", program, "--platform", "linux-64", "--lockfile", lock]
    command += ["--virtual-package-spec", virtual, "--pypi_to_conda_lookup_file", names.as_uri()]
    for name, *specs in (
        ["a", "python=3.11", "pytorch=2.4.1=cuda120*", "numpy<2", "cuda-version=12.1"],
        ["b", "pytorch-gpu==2.4.0", "python 3.11.*", "cuda-version 12.1", "pip", "forge::young"],
        ["c", "python=3.11", "pytorch 2.4.1 cuda120*", "cuda-version=12.1.*", "numpy  # [linux64]"],
    ):
        lines = ["channels: [forge]", "dependencies:", *(f"  - {spec}" for spec in specs)]
        Path("environment.yml").write_text("\n".join(lines) + "\n")
        lock.unlink(missing_ok=True)
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said = call("lock", "--from", "environment.yml", "--cuda", "12.1", "--name", name)
        assert said.status == 0, said.err
        theirs = yaml.safe_load(lock.read_text())["package"]
        found = {p.name: (p.version, p.url) for p in lock_of(name).conda}
        assert found == {p["name"]: (p["version"], p["url"]) for p in theirs}
