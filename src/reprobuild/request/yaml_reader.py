"""Parse untrusted YAML within bounds. Pure."""

from __future__ import annotations

from typing import Any

import yaml

MOST_TEXT = 8 << 20
"""Characters of a YAML file; a conda-lock.yml of 500 packages for three platforms has a million."""

MOST_LINE = 1 << 16
"""Characters of a line: PyYAML needs quadratic time for a number like ``1:1:1``."""

MOST_VALUES = 1_000_000
"""Number of values with aliases expanded: nine levels of nine aliases make 387 million."""


class _Loader(yaml.SafeLoader):
    """PyYAML's, without keys that are there twice, of which it drops the first.

    With a bound on what merge keys (``<<``) copy, each alias's content every time.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._merged = 0
        self._flat: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Resolve the merge keys of a mapping; PyYAML calls this for every mapping."""
        if id(node) not in self._flat:  # afterwards it has the merged keys beside its own
            self._flat.add(id(node))
            _hold_once(node)
        super().flatten_mapping(node)
        self._merged += len(node.value)
        if self._merged > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES:,} values, with its merge keys written out")


class _PlainLoader(_Loader):
    """One for which dates are text, and so are numbers of base 60 like ``1:30``, as in YAML 1.2."""


def _number(loader: _PlainLoader, node: yaml.ScalarNode) -> object:
    if ":" in node.value:
        return node.value
    whole = node.tag.endswith(":int")
    return loader.construct_yaml_int(node) if whole else loader.construct_yaml_float(node)


for _tag in ("int", "float"):
    _PlainLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)
_PlainLoader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: str(node.value))


def _hold_once(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
            if (key.tag, key.value) in seen:
                raise ValueError(f"line {key.start_mark.line + 1}: the key {key.value[:80]!r} is there twice")
            seen.add((key.tag, key.value))


def load_yaml(text: str, *, plain: bool = False) -> Any:
    """Parse untrusted YAML of plain values. Raises `ValueError` if it is invalid or out of bounds.

    ``plain``: whether ``1:30`` and dates are text, as for Go, and not what YAML 1.1 makes of them.
    """
    if len(text) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT:,} characters")
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MOST_LINE:
            raise ValueError(f"line {number} has more than {MOST_LINE:,} characters")
    try:
        found = (_PlainLoader if plain else _Loader)(text).get_single_data()
        _count(found, 0)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except (TypeError, AttributeError, OverflowError) as error:  # a key that is a list; a date out of range
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return found


def _count(value: object, before: int) -> int:
    """Count values, those of an alias at each use. Raises `RecursionError` for one that contains itself."""
    total = before + 1
    if total > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES:,} values, with its aliases written out")
    if isinstance(value, dict):
        for key, each in value.items():
            total = _count(each, _count(key, total))
    elif isinstance(value, list | tuple | set):
        for each in value:
            total = _count(each, total)
    return total
