"""What the opcodes of a pickle put together."""

from __future__ import annotations

import collections
import pickle
import pickletools
from collections import OrderedDict
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobuild.twice.pickle_structure import OBJECTS, Pickle, PickledObject, array_behind, date_of

_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3)
)
_OBJECTS = st.sampled_from(
    [
        date(2026, 1, 2),
        timedelta(1),
        Fraction(1, 3),
        collections.deque([1, 2]),
        frozenset((1, 2)),
        {1, 2},
        int,
    ]
)
_VALUES = st.recursive(
    _LEAVES | _OBJECTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def stack_of(data: bytes) -> list[object]:
    """Return what is on the stack when the last opcode takes it."""
    found, left = Pickle(), list[object]()
    for opcode, argument, _ in pickletools.genops(data):
        left = list(found.stack)
        found.take(opcode, argument)
    return left


@given(_VALUES, st.integers(2, 5))
def test_each_pickle_leaves_one_value(value: object, protocol: int) -> None:
    assert len(stack_of(pickle.dumps([value, value], protocol))) == 1


def test_plain_values_are_those_that_were_pickled() -> None:
    value = {"shape": (3, 4, 5, 6), "order": "C", "more": {"deep": (True, None, -1)}, "align": 16}
    assert stack_of(pickle.dumps(value, 4)) == [value]


@pytest.mark.parametrize("data", [b"\x80\x04\x85.", b"\x80\x04(K\x01s.", b"\x80\x04h\x05.", b"\x80\x04Nb."])
def test_a_damaged_pickle_is_an_error(data: bytes) -> None:
    with pytest.raises((IndexError, KeyError, ValueError)):
        stack_of(data)


def wrapper(shape: object, dtype: object, order: str = "<", *, align: object = 16) -> PickledObject:
    kind = PickledObject(("numpy", "dtype"), (dtype, False, True), (3, order, None, None, None, -1, -1, 0))
    state = {"shape": shape, "dtype": kind, "numpy_array_alignment_bytes": align}
    return PickledObject(("joblib.numpy_pickle", "NumpyArrayWrapper"), (), state)


def test_the_array_behind_it_is_as_long_as_shape_and_type_say() -> None:
    assert array_behind(wrapper((3, 4), "f8")) == (96, "<f8", True)
    assert array_behind(wrapper((), "b1", "|", align=None)) == (1, "|b1", False)
    assert array_behind(wrapper((3,), "V64", "|")) == (192, "|V64", True)
    assert array_behind(wrapper((2,), "U5")) == (40, "<U5", True)
    assert array_behind(wrapper((3,), "O8", "|")) == (0, OBJECTS, False)
    assert array_behind(PickledObject(("joblib", "Memory"), (), {})) is None


@pytest.mark.parametrize(
    "built",
    [wrapper((3,), "X8"), wrapper((3,), "f8", ">"), wrapper([3], "f8"), wrapper((-3,), "f8"),
     wrapper((1 << 41,), "f8")],
    ids=["type", "order", "list", "negative", "large"],
)  # fmt: skip
def test_an_array_that_is_not_read_is_an_error(built: PickledObject) -> None:
    with pytest.raises(ValueError, match="an array"):
        array_behind(built)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_dates_are_read_in_any_protocol(protocol: int) -> None:
    at = datetime(2026, 11, 28, 21, 35, 30, 123456, tzinfo=UTC).replace(tzinfo=None)
    held = pickle.dumps({"state": OrderedDict(a=1), "at": at, "text": "x" * 10}, protocol)
    dates = [date_of(argument) for _, argument, _ in pickletools.genops(held)]
    assert [each for each in dates if each] == ["2026-11-28 21:35:30.123456"]


def test_items_of_a_dictionary_of_another_class_are_taken() -> None:
    """As torch.save has a state_dict."""
    pickled, held = Pickle(), pickle.dumps({"state": OrderedDict(a=1, b=2), "seed": 3}, 2)
    for opcode, argument, _ in pickletools.genops(held):
        pickled.take(opcode, argument)
    assert not pickled.stack
