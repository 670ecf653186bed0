"""An embedded Kubernetes API server: in memory, held to the real one by contract tests.

with ApiServer() as server:
    print(server.url)
"""

from eventing.local.apiserver.gates import Gates
from eventing.local.apiserver.schemas import resource_definitions
from eventing.local.apiserver.server import ApiServer

__all__ = ["ApiServer", "Gates", "resource_definitions"]
