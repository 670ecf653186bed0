"""YAML that people write, read strictly: nothing is understood in a way its writer did not mean."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml


class BadYamlError(Exception):
    """Text that is no YAML, or YAML that is not read here."""


class _Loader(yaml.SafeLoader):
    """Without aliases, a few hundred bytes of which stand for gigabytes, and without a key given twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        twice = next((key for index, key in enumerate(keys) if key in keys[:index]), None)
        if twice is not None:
            raise yaml.YAMLError(f"{twice} is given twice {node.start_mark}")
        return super().construct_mapping(node, deep)


def load(text: str) -> Any:
    """The data of a YAML text, hence of JSON too.

    Raises:
        BadYamlError: with what is wrong, and the line.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-02-31
        raise BadYamlError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise BadYamlError("nested too deep") from error
