"""``python -m tests.cluster up|down|build``: start a real cluster, stop it, or build its components."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster import cluster, modules
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.cluster.modules import BuildFailed
from tests.cluster.processes import ComponentProcess, NotReady, start

TRY = """
  export KUBECONFIG={kubeconfig}
  export PATH={binaries}:$PATH        # kubectl of the same version
  kubectl get nodes,clustertrainingruntimes
  kubectl apply -k eventing/admission        # pods get the name of their group at birth
  {muster} run --kubeconfig $KUBECONFIG        # in another terminal: Muster's functions against it
  kubectl apply -f docs/first-gang.yaml        # a namespace, and a Job of four pods
  kubectl -n team-a get workloads,podgroups,pods
  make cluster-down
"""

TRY_KNATIVE = """
  export KUBECONFIG={kubeconfig}
  export PATH={binaries}:$PATH        # kubectl of the same version
  kubectl apply -k eventing/overlays/cluster        # Muster; its functions are started as processes
  kubectl -n muster-system get broker,triggers,apiserversources,pingsources,ksvc        # all become Ready
  {muster} check
  kubectl apply -f docs/first-gang.yaml        # a namespace, and a Job of four pods
  kubectl -n team-a get workloads,podgroups,pods
  make cluster-down
"""


def main(arguments: list[str]) -> int:
    """Run one command and return the exit code; print why something cannot be built or started."""
    try:
        return run(arguments)
    except (BuildFailed, NotReady) as error:
        print(error, file=sys.stderr)
        return 1


def run(arguments: list[str]) -> int:
    """Run one command and return the exit code."""
    command, *rest = arguments or ["help"]
    knative = rest[-1:] == ["knative"]
    minors = rest[:-1] if knative else rest
    if command == "up" and len(minors) <= 1 and set(minors) <= set(DEFAULT_GATES):
        return up(*minors, knative=knative)
    if command == "down" and not rest:
        return down()
    if command == "build" and not rest:
        modules.build_all()
        return 0
    print("usage: python -m tests.cluster up [1.37|1.36] [knative] | down | build", file=sys.stderr)
    return 2


def up(minor: str = "1.37", *, knative: bool = False) -> int:
    """Start everything with three nodes, save the process ids and print commands to try."""
    if state_file().exists():
        print("a cluster is up already: `make cluster-down` ends it", file=sys.stderr)
        return 1
    started = time.monotonic()
    made = cluster.start(cluster.ClusterOptions(release=Release(minor), nodes=3, knative=knative))
    if knative:
        made.processes.append(_start_serving(made))
    state = {
        "folder": str(made.folder),
        "processes": [[process.name, process.pid, str(process.log)] for process in made.processes],
    }
    state_file().write_text(json.dumps(state, indent=1))
    version = made.api.must("GET", "/version")["gitVersion"]
    print(f"\nKubernetes {version} is up after {time.monotonic() - started:.0f} s. Logs: {made.folder}")
    binaries, muster = modules.build(modules.KUBECTL).parent, Path(sys.executable).with_name("muster")
    commands = TRY_KNATIVE if knative else TRY
    print(commands.format(kubeconfig=made.kubeconfig, binaries=binaries, muster=muster))
    return 0


def _start_serving(made: cluster.RealCluster) -> ComponentProcess:
    command = [sys.executable, "-m", "tests.cluster.knative.serving", str(made.folder), made.service_network]
    return start("knative-serving", command, made.folder, {"PYTHONPATH": str(modules.REPOSITORY)})


def down() -> int:
    """Stop the processes that ``up`` started and remove their folder."""
    if not state_file().exists():
        print("no cluster is up", file=sys.stderr)
        return 0
    state = json.loads(state_file().read_text())
    for name, pid, log in reversed(state["processes"]):
        process = ComponentProcess(name, pid, Path(log))
        if _is_ours(process, state["folder"]):
            process.stop()
    cluster.remove_folder(Path(state["folder"]))
    state_file().unlink()
    return 0


def state_file() -> Path:
    """Return the file in which ``up`` saves the process ids."""
    return modules.cache_folder() / "up.json"


def _is_ours(process: ComponentProcess, folder: str) -> bool:
    """Return whether the process id still belongs to this process; a reboot assigns ids anew."""
    ps = ["ps", "-ww", "-p", str(process.pid), "-o", "command="]
    command = subprocess.run(ps, capture_output=True, text=True, check=False).stdout
    # The proxy that stands for Services is given no file of the folder.
    return folder in command or command.startswith(str(modules.cache_folder() / "bin" / process.name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
