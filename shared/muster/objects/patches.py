"""Patch types."""

from enum import StrEnum


class PatchType(StrEnum):
    """The media types of PATCH requests."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
