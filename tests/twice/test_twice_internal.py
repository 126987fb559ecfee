"""Outputs that are an operation's own memory, and those that are not."""

from __future__ import annotations

from reprobuild.twice.internal import internal_outputs, without_internal
from reprobuild.twice.records import Operation, ProgramLine


def operation(
    name: str,
    outputs: tuple[str, ...],
    inputs: tuple[tuple[str, int], ...] = (),
    shapes: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        name=name, inputs=inputs, plain="", outputs=outputs, kept=(-1,) * len(outputs),
        shapes=shapes or ("float32[4] cpu",) * len(outputs), place=ProgramLine("train.py", 1, "f", ""),
        module="", backward="_backward" in name, deterministic=True, thread="", empty=False,
        moment=0, sources=0,
    )  # fmt: skip


LAYER = operation("mkldnn_rnn_layer.default", ("aa", "bb"))


def test_what_only_its_own_backward_reads_is_internal_and_counts_as_equal() -> None:
    stream = [
        LAYER,
        operation("sum.default", ("cc",), (("aa", 0),)),
        operation("mkldnn_rnn_layer_backward.default", ("dd",), (("aa", 0), ("bb", 0))),
    ]
    internal = internal_outputs([stream])
    assert internal == {("mkldnn_rnn_layer.default", 1)}
    shown = without_internal(stream, internal)
    assert (shown[0].outputs, shown[2].inputs) == (("aa", ""), (("aa", 0), ("", 0)))
    assert shown[1] == stream[1]


def test_what_anything_else_reads_in_one_of_the_runs_is_not() -> None:
    first = [LAYER, operation("mkldnn_rnn_layer_backward.default", ("dd",), (("bb", 0),))]
    second = [*first, operation("mul.Tensor", ("ee",), (("bb", 0),))]
    assert internal_outputs([first, second]) == frozenset()


def test_what_nobody_reads_may_have_left_torch_unless_it_is_bytes() -> None:
    assert internal_outputs([[operation("topk.default", ("aa", "bb"))]]) == frozenset()
    shapes = ("float32[4] cpu", "uint8[512] cpu")
    assert internal_outputs([[operation("_cudnn_rnn.default", ("aa", "bb"), (), shapes)]]) == {
        ("_cudnn_rnn.default", 1)
    }


def test_the_first_output_is_never_internal() -> None:
    stream = [LAYER, operation("mkldnn_rnn_layer_backward.default", ("dd",), (("aa", 0),))]
    assert internal_outputs([stream]) == frozenset()
