"""The embedded API server alone: `python -m eventing.local.apiserver --port 8001`."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from eventing.local.apiserver import ApiServer, resource_definitions


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m eventing.local.apiserver", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--kubeconfig-out", type=Path, help="write a kubeconfig there")
    parser.add_argument("--release", choices=("1.37", "1.36"), default="1.37")
    parser.add_argument(
        "--without-crds", action="store_true", help="leave JobSet's and the Trainer's CRDs out"
    )
    given = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with ApiServer(port=given.port, release=given.release) as server:
        if given.kubeconfig_out:
            given.kubeconfig_out.write_text(server.kubeconfig())
        print(server.url, flush=True)
        if not given.without_crds:
            server.load(resource_definitions())
        stop.wait()


if __name__ == "__main__":
    main()
