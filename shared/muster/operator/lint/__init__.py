"""Check policies and group labels in manifests, for `muster lint`."""

from muster.operator.lint.labels import Severity
from muster.operator.lint.lint import Fault, LintResult, lint

__all__ = ["Fault", "LintResult", "Severity", "lint"]
