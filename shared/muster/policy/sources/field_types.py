"""Types of the fields of a policy, with the limits of scheduling.k8s.io (Kubernetes v1.37.1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from muster.objects.scheduling import MOST_MEMBERS

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}([.]{_LABEL})*"
_QUALIFIED = "[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_SUBDOMAIN_LENGTH = 253


def _with_short_prefix(key: str) -> str:
    prefix = key.rpartition("/")[0]
    if len(prefix) > _SUBDOMAIN_LENGTH:
        raise ValueError(f"the part before / must have at most {_SUBDOMAIN_LENGTH} characters")
    return key


DnsLabel = Annotated[str, StringConstraints(pattern=f"^{_LABEL}$", max_length=63)]
Subdomain = Annotated[str, StringConstraints(pattern=f"^{_SUBDOMAIN}$", max_length=_SUBDOMAIN_LENGTH)]
LabelKey = Annotated[
    str,
    StringConstraints(pattern=f"^({_SUBDOMAIN}/)?{_QUALIFIED}$", max_length=317),
    AfterValidator(_with_short_prefix),
]
LabelValue = Annotated[str, StringConstraints(pattern=f"^{_QUALIFIED}$")]
Count = Annotated[int, Field(ge=1, le=MOST_MEMBERS, strict=True)]
