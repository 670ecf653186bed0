"""Check policies and group labels in manifests, for `muster lint`."""

from muster.operator.lint.lint import LintResult, lint
from muster.operator.lint.model import Fault, Severity

__all__ = ["Fault", "LintResult", "Severity", "lint"]
"""The result of a lint, and what makes it."""
