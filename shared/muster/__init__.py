"""Gang scheduling for Kubernetes by steps that react to events; `dir(muster)` lists the names for your own.

A step decides by a pure function, so what it would do can be seen without a cluster:

>>> from muster import POD_GROUPS, Happened, NoOp, PodGroup, Step
>>> from muster import get, in_order, may, not_for_step, objects_of
>>> greet = Step(
...     name="greet",
...     predicate=lambda event: not_for_step(event, PodGroup={Happened.UPDATE}) or event.ref,
...     observe=lambda cluster, ref: get(cluster, PodGroup, POD_GROUPS, ref),
...     plan=lambda group, now: NoOp("Greeted", f"{group.metadata.namespace} is placed: {group.placed}"),
...     execute=in_order,
...     swept=lambda cluster, namespace: objects_of(cluster, namespace, POD_GROUPS),
...     permissions=may("get list", POD_GROUPS),
... )
>>> from muster.testing import plan_of, shipped
>>> plan_of(greet, shipped("torch").case("PodGroup update", moment="all bound")).message
'team-a is placed: True'

docs/library.md tells of each name; `muster new-step` writes a step with its tests and manifests.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_LIBRARY = "muster.library"


def __getattr__(name: str) -> Any:
    """A public name; the library is imported at the first use, so that commands import what they need."""
    if name == "__version__":
        return import_module("importlib.metadata").version("muster-gangs")
    if name == "__all__":
        return import_module(_LIBRARY).__all__
    library = None if name.startswith("_") else import_module(_LIBRARY)
    if library is None or name not in library.__all__:
        raise AttributeError(f"module {__name__!r} has no public name {name!r}")
    return getattr(library, name)


def __dir__() -> list[str]:
    dunders = {name for name in globals() if name.startswith("__")}
    return sorted({*dunders, "__all__", "__version__", *__getattr__("__all__")})
