"""Builders of PriorityClasses and of Job templates that use them."""

from __future__ import annotations

from typing import Any

from muster.objects.scheduling import PriorityClass
from tests.support.builders import Modifier, Object, template_spec


def a_priority_class(name: str, value: int, **fields: Any) -> Object:
    """Return a PriorityClass as the API server stores it."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "uid": f"{name}-uid"},
        "value": value,
        **fields,
    }


def a_priority_class_view(name: str, value: int, **fields: Any) -> PriorityClass:
    """Return the typed view of a PriorityClass, as a step reads it."""
    return PriorityClass.read(a_priority_class(name, value, **fields))


def of_class(name: str) -> Modifier:
    """Set priorityClassName in a Job's pod template."""
    return template_spec(priorityClassName=name)
