"""Explain why an owner is grouped as it is, or is not: for `muster explain`."""

from muster.operator.explain.explanation import Explanation, explain
from muster.operator.explain.render import as_mermaid, as_text

__all__ = ["Explanation", "as_mermaid", "as_text", "explain"]
