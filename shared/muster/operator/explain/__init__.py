"""Explain how an owner is grouped and why, and what a pod, group or policy is: for `muster explain`."""

from muster.operator.explain.explanation import Explanation, explain
from muster.operator.explain.facts import Facts
from muster.operator.explain.render import as_data, as_text

__all__ = ["Explanation", "Facts", "as_data", "as_text", "explain"]
