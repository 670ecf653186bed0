"""Check a cluster before Muster is installed, the installation, and whether it can be uninstalled."""

from muster.operator.check.installation import check_installation
from muster.operator.check.policies import check_policies, policy_namespace
from muster.operator.check.preflight import Finding, Level, check_cluster
from muster.operator.check.uninstall import check_uninstall

__all__ = [
    "Finding",
    "Level",
    "check_cluster",
    "check_installation",
    "check_policies",
    "check_uninstall",
    "policy_namespace",
]
