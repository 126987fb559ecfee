from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from reprobuild.fetch.store import Store
from reprobuild.host.home import Home
from reprobuild.lock.bill import Facts, cyclonedx
from reprobuild.resolve.package_facts import facts_of_wheels
from reprobuild.resolve.wheel_bills import with_own_bills
from support.fetching import sha256
from support.locks import LOCK
from support.wheels import wheel_bytes

OPENSSL = {"type": "library", "name": "openssl", "version": "3.0.1", "purl": "pkg:generic/openssl@3.0.1"}


def bill(*components: Any, **more: Any) -> str:
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "components": components, **more})


def facts(tmp_path: Path, **bills: str | bytes) -> Facts:
    files = {f"torch-1.dist-info/sboms/{name}.json": text for name, text in bills.items()}
    path = tmp_path / "torch-1-py3-none-any.whl"
    path.write_bytes(wheel_bytes("torch", "1", files))
    package = next(p for p in LOCK.python if p.name == "torch")
    return with_own_bills(Facts(), package, path)


def test_components_are_taken_over_once_and_those_in_them_too(tmp_path: Path) -> None:
    inner = {"type": "file", "name": "a.c", "hashes": [{"alg": "SHA-256", "content": "a" * 64}]}
    one = bill({**OPENSSL, "components": [inner]})
    found = facts(tmp_path, one=one, two=bill(OPENSSL))
    assert list(found.parts) == [{"type": "file", "name": "a.c", "sha256": "a" * 64}, OPENSSL]
    assert found.unread == []


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b"[" * 99_999, b'{"spdxVersion": "SPDX-2.3"}'),
        *(b'{"bomFormat": 1}', bill(1).encode(), bill({"name": "x", "hashes": [1]}).encode()),
        b'{"bomFormat": "CycloneDX", "components": {"a": 1}}',
    ],
)
def test_what_is_not_read_is_named(text: bytes, tmp_path: Path) -> None:
    found = facts(tmp_path, one=text)
    assert list(found.unread) == ["torch-1.dist-info/sboms/one.json"]
    assert list(found.parts) == []


def test_only_fields_of_a_known_form_are_taken_over(tmp_path: Path) -> None:
    odd = {"type": "virus", "name": "x", "version": 3, "purl": "p\n", "hashes": [{"alg": "SHA-256"}]}
    found = facts(tmp_path, one=bill(odd, {"name": ""}, {"name": "y" * 9999}, {"type": "library"}))
    assert list(found.parts) == [{"type": "library", "name": "x"}]


def test_the_bill_of_a_lock_has_them_and_keeps_its_schema(tmp_path: Path) -> None:
    content = wheel_bytes(
        "torch",
        "2.4.1",
        {
            "torch-2.4.1.dist-info/sboms/one.json": bill(OPENSSL),
            "torch-2.4.1.dist-info/sboms/b.spdx": "SPDX",
        },
    )
    torch = next(p for p in LOCK.python if p.name == "torch")
    wheel = replace(torch.wheel, sha256=sha256(content), size=len(content))
    lock = replace(LOCK, python=[replace(torch, wheel=wheel)])
    home = Home(tmp_path / "home")
    Store(home).add_document(content)
    text = cyclonedx(lock, facts_of_wheels(lock, home))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    (component,) = [c for c in json.loads(text)["components"] if c["name"] == "torch"]
    assert component["components"] == [{**OPENSSL, "bom-ref": "pkg:pypi/torch@2.4.1#part-0"}]
    assert component["properties"] == [
        {"name": "reprobuild:sbom", "value": "torch-2.4.1.dist-info/sboms/b.spdx"}
    ]
