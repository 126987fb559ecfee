from __future__ import annotations

import inspect

import pytest

from reprobuild import errors
from reprobuild.errors import ReprobuildError

CLASSES = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
KINDS = [kind for kind in CLASSES if issubclass(kind, ReprobuildError) and kind is not ReprobuildError]


def test_every_error_has_the_one_base() -> None:
    assert {*KINDS, ReprobuildError} == set(CLASSES)


def test_exit_codes_are_unique_and_none_is_python_s_or_the_shell_s() -> None:
    codes = [kind.exit_code for kind in KINDS]
    assert len(set(codes)) == len(codes) > 5
    # 0 is success, 1 a bug's traceback, 2 bad arguments; 64 and up are left to sysexits and signals.
    assert all(2 < code < 64 for code in codes)


@pytest.mark.parametrize("kind", KINDS)
def test_each_has_a_message_a_hint_and_one_base(kind: type[ReprobuildError]) -> None:
    error = kind("what happened", hint="what to do")
    assert isinstance(error, ReprobuildError)
    assert (str(error), error.message, error.hint) == ("what happened", "what happened", "what to do")
    assert kind("alone").hint == ""
    assert kind.__doc__
