"""CDI files are read as the Go library of Docker and Podman reads them: seen with Podman 4.3."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from reprobuild.engines.cdi import KIND, GpuAccess
from reprobuild.engines.cdi_files import as_text, read_cdi
from reprobuild.engines.gpu import gpu_access
from reprobuild.errors import HostError
from support.cdi import a_spec

pytest_plugins = ["support.cdi"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (755, "755"),
        (-1, "-1"),
        (True, "true"),
        (False, "false"),
        (0.5, "0.5"),
        (1.0, "1"),
        (1e30, 1e30),
        ("x", "x"),
        (None, None),
        (["x"], ["x"]),
    ],
)
def test_text_without_quotes(value: object, text: object) -> None:
    assert as_text(value) == text


def test_what_yaml_takes_for_a_number_is_text_where_text_belongs(cdi: Path) -> None:
    hook = {
        "hookName": "createContainer",
        "path": "/x",
        "args": ["chmod", "755", "0.5", "true", "1:30", "2024-01-02"],
    }
    text = yaml.safe_dump(a_spec(name="0", hooks=[hook]))
    assert "'755'" in text
    (cdi / "nvidia.yaml").write_text(text.replace("'", ""))
    access = gpu_access([cdi], Path("/nowhere"))
    assert isinstance(access, GpuAccess)
    assert access.hooks["createContainer"][0]["args"] == hook["args"]


@pytest.mark.parametrize("key", ["major", "minor", "fileMode", "uid", "gid"])
@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ("195", False),
        (True, False),
        ([], False),
        (1 << 63, False),
        (195, True),
        (None, True),
        ("0o666", True),
    ],
)
def test_a_number_in_quotes_is_none(cdi: Path, key: str, value: object, valid: bool) -> None:
    node = {"path": "/dev/nvidia0", key: value}
    (cdi / "nvidia.json").write_text(json.dumps(a_spec(deviceNodes=[node])))
    if valid:
        assert isinstance(gpu_access([cdi], Path("/nowhere")), GpuAccess)
        return
    with pytest.raises(HostError, match=rf"not a valid CDI specification: .*deviceNodes\[0\]\.{key}: "):
        gpu_access([cdi], Path("/nowhere"))


def test_json_is_yaml_and_need_not_be_what_the_name_says(tmp_path: Path) -> None:
    table = {"kind": KIND, "devices": [{"name": "0"}]}
    for name, text in (
        ("a.json", yaml.safe_dump(table)),
        ("a.yaml", json.dumps(table)),
        ("b.yaml", json.dumps(table, indent="\t")),  # PyYAML refuses tabs
    ):
        (path := tmp_path / name).write_text(text)
        assert read_cdi(path, KIND) == table


def test_the_error_is_that_of_the_form_in_the_name(tmp_path: Path) -> None:
    (path := tmp_path / "nvidia.json").write_text('{"kind": "nvidia.com/gpu", 5]')
    with pytest.raises(HostError, match="double quotes"):
        read_cdi(path, KIND)
    (path := tmp_path / "nvidia.yaml").write_text("a: 'b")
    with pytest.raises(HostError, match="unexpected end of stream"):
        read_cdi(path, KIND)
    for text in ('{"kind": "nvidia.com/gpu", "kind": 2}', "kind: nvidia.com/gpu\nkind: 2"):
        path.write_text(text)
        with pytest.raises(HostError, match="there twice"):
            read_cdi(path, KIND)
