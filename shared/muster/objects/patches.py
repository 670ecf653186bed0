"""The kinds of PATCH."""

from enum import StrEnum


class PatchType(StrEnum):
    """The media types of a PATCH, as the API server tells them apart."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"
