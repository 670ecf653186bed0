"""Strict parsing of YAML, without aliases and duplicate keys."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml


class BadYamlError(Exception):
    """The text is no YAML, or has aliases or duplicate keys."""


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses duplicate keys, and aliases, with which few bytes expand to gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        duplicate = next((key for index, key in enumerate(keys) if key in keys[:index]), None)
        if duplicate is not None:
            raise yaml.YAMLError(f"{duplicate} is given twice {node.start_mark}")
        return super().construct_mapping(node, deep)


def load(text: str) -> Any:
    """The data of a YAML or JSON text.

    Raises:
        BadYamlError: the text is invalid; the message has the error and the line.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2026-02-31
        raise BadYamlError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise BadYamlError("nested too deeply") from error
