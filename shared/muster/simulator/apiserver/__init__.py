"""An embedded Kubernetes API server in memory, compared with the real one by `tests/contract`.

Use it with `with ApiServer() as server: print(server.url)`; see `server` for faults, counters and snapshots.

- The path of a request: `http` (parsing, and the kind and verb of a URL), `api` (dispatch), `handlers`.
- The path of a write: `handlers.writes`, `fields.decoding`, `fields.defaults`, `patches`, `admission`,
  `fields.strategies` with `fields.disabled_fields`, `validation`, `store`, then `collector` for garbage
  collection.
- Other forms of objects: `http.protobuf` (requests), `handlers.tables`, `handlers.printers` (`kubectl get`).
- What is served: `gates`, `kinds`, `schemas`, `discovery`.
- Shared values: `http.requests`, `objects`, `status`.

Not supported: authentication, authorization, quota, webhooks, CEL of custom resources except `self ==
oldSelf` in CustomResourceDefinitions, answers in protobuf, conversion of custom resources, containers (logs
and exec are answered with 501), and the validation of fields that no step reads. The other controllers are in
`muster.simulator.controllers`.
"""

from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.schemas import resource_definitions
from muster.simulator.apiserver.server import ApiServer

__all__ = ["ApiServer", "Gates", "resource_definitions"]
