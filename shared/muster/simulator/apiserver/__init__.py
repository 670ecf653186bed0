"""An embedded Kubernetes API server in memory, compared with the real one by `tests/contract`.

- The path of a request: `http` (parsing, and the kind and verb of a URL), `api` (dispatch), `handlers`.
- The path of a write: `handlers.writes`, `fields.decoding`, `fields.defaults`, `patches`, `admission`,
  `fields.strategies`, `validation`, `store`, then `collector` for garbage collection.
- What is served: `kinds`, `schemas`, `discovery`.
"""

from muster.simulator.apiserver.api import ApiServer
from muster.simulator.apiserver.kinds import Gates
from muster.simulator.apiserver.schemas import resource_definitions

__all__ = ["ApiServer", "Gates", "resource_definitions"]
