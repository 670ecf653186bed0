"""Why an owner is grouped as it is, or is not: for `muster explain`."""

from eventing.local.explanation.explain import Explanation, explain
from eventing.local.explanation.mermaid import as_mermaid
from eventing.local.explanation.text import as_text

__all__ = ["Explanation", "as_mermaid", "as_text", "explain"]
