"""Lists that come in pages.

The rules are Kubernetes' own: docs/reference/using-api/api-concepts, "Retrieving large results sets in
chunks".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.cluster import errors


@dataclass(frozen=True)
class Page:
    """One answer to a list.

    Attributes:
        objects: parsed JSON, each with its apiVersion and kind, as a GET would give it.
        token: where the next page begins; empty on the last one.
        version: the resourceVersion from which a watch sees what comes after the list.
    """

    objects: list[dict[str, Any]]
    token: str = ""
    version: str = ""


def whole(page_at: Callable[[str], Page]) -> Page:
    """All pages as one.

    They are of one moment. Where that moment is forgotten before the last page (410 after five minutes, or a
    compaction), the list is begun once more.

    Args:
        page_at: fetches the page of a token; the empty token begins a list.

    Raises:
        Expired: it was forgotten twice.
    """
    try:
        return _joined(page_at)
    except errors.Expired:
        return _joined(page_at)


def _joined(page_at: Callable[[str], Page]) -> Page:
    page = page_at("")
    found = list(page.objects)
    while page.token:
        page = page_at(page.token)
        found += page.objects
    return Page(found, "", page.version)
