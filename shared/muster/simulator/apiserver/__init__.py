"""An embedded Kubernetes API server: in memory, held to the real one by contract tests.

`with ApiServer() as server: print(server.url)`.

Not there, and told so where it shows: authentication, roles, quota, webhooks, CEL (but for `self == oldSelf`
in CustomResourceDefinitions), protobuf bodies, rules of fields that no step reads, conversion of custom
resources. Controllers other than those that collect are in `muster.simulator.controllers`.
"""

from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.schemas import resource_definitions
from muster.simulator.apiserver.server import ApiServer

__all__ = ["ApiServer", "Gates", "resource_definitions"]
