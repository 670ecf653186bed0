"""The names that a new step may not have: `kubectl apply -k` would replace objects that have them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from muster.data import EVENTING
from muster.objects import yaml_files
from muster.runtime.steps import step_names

_KUBERNETES = frozenset({"admin", "cluster-admin", "default", "edit", "view"})
"""The ClusterRoles for users (bootstrappolicy, v1.37.1), and the service account that each namespace has."""
_PREFIX = "muster-"
_EXAMPLES = EVENTING / "examples"


def owner_of(service: str) -> str:
    """Return whose objects of that name a step would replace: `Muster`, `Kubernetes` or ""."""
    if service in _KUBERNETES:
        return "Kubernetes"
    if service.startswith(_PREFIX) or service in _musters_names():
        return "Muster"
    return ""


@cache
def _musters_names() -> frozenset[str]:
    """Return the names of functions, and of all objects in eventing/, whichever overlay has them."""
    functions = (name.replace("_", "-") for name in step_names())
    return frozenset(("muster", "dead-letter", *functions, *_names_of_objects()))


def _names_of_objects() -> Iterator[str]:
    for path in EVENTING.rglob("*.yaml"):
        if not path.is_relative_to(_EXAMPLES):
            for document in yaml_files.load_all(path.read_text()):
                name = (document.get("metadata") or {}).get("name") if isinstance(document, dict) else None
                if isinstance(name, str):
                    yield name
