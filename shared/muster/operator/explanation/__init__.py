"""Why an owner is grouped as it is, or is not: for `muster explain`."""

from muster.operator.explanation.explain import Explanation, explain
from muster.operator.explanation.mermaid import as_mermaid
from muster.operator.explanation.text import as_text

__all__ = ["Explanation", "as_mermaid", "as_text", "explain"]
