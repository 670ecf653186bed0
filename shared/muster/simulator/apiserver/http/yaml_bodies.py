"""YAML in bodies of requests; imported only for clients that send some, since `yaml` takes a while."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """Refuses aliases, with which a kilobyte becomes gigabytes, or an object that is in itself."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not supported")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def load(text: bytes) -> Any:
    """Return the value of a YAML text.

    Raises:
        ValueError: it is no YAML, has aliases, or a value that its tag cannot have, such as a 99th month.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, LookupError, AttributeError) as error:
        raise ValueError(str(error)) from error
