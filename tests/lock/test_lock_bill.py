"""The bill of materials of a lock."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from reprobuild.lock.bill import Facts, cyclonedx
from reprobuild.lock.exports import export
from reprobuild.lock.packages import BuildFiles, CondaPackage, SourceArchive
from reprobuild.lock.standalone_python import StandalonePython
from support.locks import LOCK, OTHER_FILES

pytest_plugins = ["support.commands", "support.family"]


def schema_error(text: str) -> Any:
    """Return what CycloneDX's own validator finds wrong."""
    # Imported late: its schema formats take ten seconds to load, which every process would pay.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)


def test_a_bill_of_materials_keeps_the_schema_and_names_every_file() -> None:
    text = export(LOCK, "cyclonedx")
    assert schema_error(text) is None
    data = json.loads(text)
    found = {c["hashes"][0]["content"] for c in data["components"] if c["type"] == "library"}
    assert found == {p.wheel.sha256 for p in LOCK.python} | {p.sha256 for p in LOCK.debian}
    purls = [c["purl"] for c in data["components"] if c["type"] == "library"]
    assert len(set(purls)) == len(purls)
    assert "pkg:pypi/torch@2.4.1" in purls
    assert any(p.startswith("pkg:deb/debian/python3.11@3.11.2-6") and "distro=debian-" in p for p in purls)
    named = export(replace(LOCK, own_files=OTHER_FILES), "cyclonedx")
    assert schema_error(named) is None
    own = [c for c in json.loads(named)["components"] if c["type"] == "file"]
    assert [(c["name"], c["version"]) for c in own] == [("golden.json", "0.0.9"), ("selftest.py", "0.0.9")]
    data["components"][-1]["hashes"][0]["alg"] = "NONE"
    assert schema_error(json.dumps(data)) is not None


def test_a_bill_with_all_that_files_say_keeps_the_schema() -> None:
    """Licenses, dependencies, Debian's sources, and addresses with what an index may write into them."""
    wheel, debian = LOCK.python[0].wheel, LOCK.debian[0]
    odd = "https://index.example:80/a b[1]|{2}/é%zz%2B+cu121~.whl?a=[1]&b=^#x#y"
    commit = SourceArchive(
        kind="vcs", filename="a.tar", url="https://git.example/a[1]", commit="0" * 40, sha256="3" * 64, size=1
    )
    conda = CondaPackage(
        name="_openmp_mutex",
        version="1!4.5",
        build="2_gnu|x",
        subdir="linux-64",
        url="https://conda.example/label/a b/linux-64/_openmp_mutex-4.5-2_gnu.conda",
        sha256="4" * 64,
        md5=None,
        size=1,
        depends=(),
    )
    lock = replace(
        LOCK,
        python=[
            replace(LOCK.python[0], wheel=replace(wheel, url=odd)),
            replace(LOCK.python[1], source=commit),
            *LOCK.python[2:],
        ],
        debian=[replace(debian, path="pool/a/a b/é_1%3a2~x+y.deb"), *LOCK.debian[1:]],
        conda=[conda],
        build=BuildFiles(python=LOCK.python[:1], debian=LOCK.debian[:1]),
        standalone=StandalonePython(version="3.11.9", url=odd, sha256="5" * 64, size=1),
        own_files=OTHER_FILES,
    )
    files = [p.wheel.sha256 for p in lock.python] + [p.sha256 for p in lock.debian] + [conda.sha256]
    said = Facts(licenses=["GPL-2+ with OpenSSL exception", "a\0b", "", "é\u2028"], requires=files)
    facts = dict.fromkeys(files, replace(said, upstream="gcc 12@1:12.2.0-14~x+y"))
    facts[wheel.sha256] = Facts(expression="LicenseRef-Own AND (MIT OR GPL-2.0-or-later)", requires=["gone"])
    text = cyclonedx(lock, facts)
    assert schema_error(text) is None
    data = json.loads(text)
    found = next(
        c for c in data["components"] if c.get("purl", "").startswith(f"pkg:pypi/{lock.python[0].name}@")
    )
    address = (
        "https://index.example:80/a%20b%5B1%5D%7C%7B2%7D/%C3%A9%25zz%2B+cu121~.whl?a=%5B1%5D&b=%5E#x%23y"
    )
    assert found["externalReferences"][0]["url"] == address
    refs = [c["bom-ref"] for c in (*data["components"], data["metadata"]["component"])]
    assert len(set(refs)) == len(refs)
    own = [each["ref"] for each in data["dependencies"]]
    assert len(set(own)) == len(own)
    assert {ref for each in data["dependencies"] for ref in (each["ref"], *each["dependsOn"])} <= set(refs)
