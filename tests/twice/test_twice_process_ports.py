"""Ports that are made of process numbers."""

from __future__ import annotations

import pytest

from reprobuild.twice.evidence import Evidence
from reprobuild.twice.process_ports import port_of_processes

SIDES = [Evidence(names={"process numbers": (number,)}) for number in ("4321", "5387")]


@pytest.mark.parametrize(
    ("texts", "line", "port"),
    [
        (("29821", "29887"), "MASTER_PORT port={}", True),  # 29500 + pid % 1000
        (("6044", "6060"), "listening on 127.0.0.1:{}", True),  # 6023 + pid % 50
        (("24321", "25387"), "http://localhost:{}/", True),  # 20000 + pid % 10000
        (("29821", "29888"), "port {}", False),
        (("29821", "29887"), "reward {}", False),
        (("29821", "29887"), "10.0.0.1:{}1", False),
        (("821", "887"), "port {}", False),
        (("71321", "71387"), "port {}", False),
    ],
)
def test_a_port_differs_as_the_process_numbers_do(texts: tuple[str, str], line: str, port: bool) -> None:
    found = port_of_processes(texts, [line.format(each) for each in texts], SIDES)
    assert found == ("port" if port else None)


def test_without_process_numbers_nothing_is_known() -> None:
    lines = ["port 29821", "port 29887"]
    assert port_of_processes(("29821", "29887"), lines, [Evidence(), Evidence()]) is None
