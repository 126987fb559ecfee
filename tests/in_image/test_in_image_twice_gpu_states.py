"""What a GPU says of times and memory is recorded, by stand-ins for torch's functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from reprobuild.in_image.twice import gpu_states, measured
from reprobuild.in_image.twice.pins import _fixed
from reprobuild.in_image.twice.sources import Sources


class Kept(Sources):
    """Keeps the records."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, str, str, str]] = []

    def write(self, record: dict[str, Any]) -> None:
        self.kept.append((record["kind"], record["name"], record["shown"], record["place"][3]))


def stand_in() -> Any:
    class Event:
        def elapsed_time(self, end: object) -> float:
            return 12.5

    return SimpleNamespace(cuda=SimpleNamespace(Event=Event, mem_get_info=lambda: (5, 7)))


def test_a_time_between_two_events_and_the_free_memory_are_told_with_their_lines() -> None:
    torch, sources = stand_in(), Kept()
    gpu_states.watch(sources.watch, torch)
    scale = 1 + torch.cuda.Event().elapsed_time(torch.cuda.Event()) * 1e-3
    free, _ = torch.cuda.mem_get_info()
    assert (scale, free) == (1.0125, 5)
    assert sources.kept == [
        (
            *("clock", "torch.cuda.Event.elapsed_time", "12.5"),
            "scale = 1 + torch.cuda.Event().elapsed_time(torch.cuda.Event()) * 1e-3",
        ),
        ("machine", "torch.cuda.mem_get_info", "(5, 7)", "free, _ = torch.cuda.mem_get_info()"),
    ]


def test_what_is_measured_is_followed_into_text() -> None:
    torch = stand_in()

    def followed(owner: Any, names: tuple[str, ...], faster: Any = None) -> None:
        for name in names:
            inner = getattr(owner, name, None)
            if inner is not None:
                setattr(owner, name, lambda *given, inner=inner: measured.of(inner(*given), faster=faster))

    gpu_states.measure(followed, torch, lambda value: 1000 * value)
    assert type(took := torch.cuda.Event().elapsed_time(None)) is measured.Float
    assert (float(took), *torch.cuda.mem_get_info()) == (12500, 5, 7)  # what is free is as it is
    assert [type(each) for each in torch.cuda.mem_get_info()] == [measured.Int, measured.Int]


def test_an_experiment_gives_numbers_of_the_same_type() -> None:
    assert (_fixed(3), _fixed(0.25)) == (1 << 30, 0.5)
