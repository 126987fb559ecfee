"""The table of PDM: overrides, exclusions, sources."""

from __future__ import annotations

from reprobuild.imports.request_keys import request_table
from support.fixtures import fixtures_of
from support.team_files import PYTORCH, Read

globals().update(fixtures_of("support.team_files"))


def test_pdms_overrides_exclusions_and_sources_count(read: Read) -> None:
    found = read(
        '[project]\nname = "ours"\ndependencies = ["urllib3<2", "torch"]\n'
        f'[[tool.pdm.source]]\nname = "torch"\nurl = "https://packages.{PYTORCH}/whl/cu118"\n'
        'include_packages = ["torch"]\n'
        '[tool.pdm.resolution]\nexcludes = ["pytz"]\nallow-prereleases = true\n'
        '[tool.pdm.resolution.overrides]\nurllib3 = "2.2.1"\nidna = ">=3"\n'
        '[tool.pixi.dependencies]\ngcc = "*"\n'
    )
    table = request_table(found, {})
    assert (table["cuda"], table["index"], table["packages"]) == ("11.8", "pytorch", ["urllib3==2.2.1"])
    assert table["overrides"] == ["urllib3==2.2.1", "idna>=3", 'pytz; python_version < "0"']
    assert [line.partition(": ")[2].partition(" is ")[0] for line in found.ignored] == [
        *("tool.pdm.source[0].include_packages", "tool.pdm.resolution.allow-prereleases", "tool.pixi"),
    ]
