"""Paged lists of the API server.

See the Kubernetes documentation, docs/reference/using-api/api-concepts, "Retrieving large results sets in
chunks".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.cluster import errors


@dataclass(frozen=True)
class Page:
    """One page of a list.

    Attributes:
        objects: parsed JSON, each with apiVersion and kind, as from a GET.
        token: the continue token of the next page; "" on the last page.
        version: the resourceVersion from which a watch sees the changes after the list.
    """

    objects: list[dict[str, Any]]
    token: str = ""
    version: str = ""


def all_pages(page_at: Callable[[str], Page]) -> Page:
    """All pages of a list, joined into one.

    All pages show the list at one resourceVersion. If that expires before the last page (410 after five
    minutes, or after a compaction), the list is read once more from the beginning.

    Args:
        page_at: fetches the page of a continue token; "" begins a list.

    Raises:
        Expired: the resourceVersion expired twice.
    """
    try:
        return _joined(page_at)
    except errors.Expired:
        return _joined(page_at)


def _joined(page_at: Callable[[str], Page]) -> Page:
    page = page_at("")
    objects = list(page.objects)
    while page.token:
        page = page_at(page.token)
        objects += page.objects
    return Page(objects, "", page.version)
