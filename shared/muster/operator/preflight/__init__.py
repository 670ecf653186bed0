"""Is a cluster fit for Muster, is Muster installed on it as it should be, and may it be taken away."""

from muster.operator.preflight.apis import of_the_cluster
from muster.operator.preflight.finding import Finding, Level
from muster.operator.preflight.installed import of_the_installation
from muster.operator.preflight.uninstall import before_uninstalling

__all__ = ["Finding", "Level", "before_uninstalling", "of_the_cluster", "of_the_installation"]
