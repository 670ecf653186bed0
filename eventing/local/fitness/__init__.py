"""Is a cluster fit for Muster, is Muster installed on it as it should be, and may it be taken away."""

from eventing.local.fitness.apis import of_the_cluster
from eventing.local.fitness.finding import Finding, Level
from eventing.local.fitness.installed import of_the_installation
from eventing.local.fitness.uninstall import before_uninstalling

__all__ = ["Finding", "Level", "before_uninstalling", "of_the_cluster", "of_the_installation"]
