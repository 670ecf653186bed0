"""Builds the real components from their pinned Go modules into a cache folder.

Every folder beside this file with a ``go.mod`` pins one component by a ``tool`` line, so a build needs only
Go and its module proxy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.cluster.knative import edits

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
CACHE_VARIABLE = "MUSTER_CLUSTER_CACHE"


class BuildFailed(RuntimeError):
    """The Go toolchain is missing or failed to build a component; the message contains its output."""


CLIENTS_AND_RULES = ("k8s.io/client-go/...", "k8s.io/kubectl/...", "k8s.io/kubernetes/...")
"""Large packages that are seldom called: generated clients, validation, conversions, controllers."""


@dataclass(frozen=True)
class Component:
    """One binary and the Go package it is built from.

    Attributes:
        name: file name in the cache folder.
        module: folder beside this file whose ``go.mod`` pins the version.
        package: import path of the main package, or an absolute file of the Go distribution.
        version: stamped into ``k8s.io/component-base/version`` where that package is linked; a Kubernetes
            component without it calls itself v0.0.0 and refuses feature gates by emulation version.
        inlined: whether frequently called packages are compiled with inlining, which takes a fifth longer.
            Components that share packages must agree, or each compiles them again.
        packages: further main packages; then `name` is a folder, with one binary for each package.
        edited: whether the edits of ``knative/edits.py`` apply.
    """

    name: str
    module: str
    package: str
    version: str = ""
    inlined: bool = True
    packages: tuple[str, ...] = ()
    edited: bool = False


def _kubernetes(module: str, version: str, *, inlined: bool) -> dict[str, Component]:
    names = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
    return {
        name: Component(f"{name}-{version}", module, f"k8s.io/kubernetes/cmd/{name}", version, inlined)
        for name in names
    }


KUBERNETES = {
    "1.37": _kubernetes("kubernetes-1.37", "v1.37.1", inlined=True),
    "1.36": _kubernetes("kubernetes-1.36", "v1.36.3", inlined=False),
}
KUBECTL = Component("kubectl", "kubernetes-1.37", "k8s.io/kubernetes/cmd/kubectl", "v1.37.1")
HELM = Component("helm", "helm", "helm.sh/helm/v3/cmd/helm")
ETCD = Component("etcd", "etcd", "go.etcd.io/etcd/server/v3")
JOBSET = Component("jobset", "jobset", "sigs.k8s.io/jobset", inlined=False)
TRAINER = Component(
    "trainer", "trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager", inlined=False
)
LWS = Component("lws", "lws", "sigs.k8s.io/lws/cmd", inlined=False)
KUBERAY = Component("kuberay", "kuberay", "github.com/ray-project/kuberay/ray-operator", inlined=False)
KWOK = Component("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", inlined=False)
ADAPTER = Component(
    "knative-adapter",
    "knative",
    "knative.dev/eventing/cmd/apiserver_receive_adapter",
    inlined=False,
    edited=True,
)
EVENTING = Component(
    "knative-eventing",
    "knative",
    "knative.dev/eventing/cmd/controller",
    inlined=False,
    packages=tuple(
        f"knative.dev/eventing/cmd/{command}"
        for command in (
            "apiserver_receive_adapter",
            "broker/filter",
            "broker/ingress",
            "in_memory/channel_controller",
            "in_memory/channel_dispatcher",
            "mtchannel_broker",
            "mtping",
            "webhook",
        )
    ),
    edited=True,
)
SERVING_WEBHOOK = Component(
    "knative-serving-webhook", "knative", "knative.dev/serving/cmd/webhook", inlined=False, edited=True
)
SERVICE_PROXY = Component(
    "service-proxy", "knative", "muster.dev/tests/cluster/knative/proxy", inlined=False, edited=True
)


EVERY_COMPONENT = (
    ETCD,
    *KUBERNETES["1.37"].values(),
    *(KUBECTL, JOBSET, TRAINER, LWS, KUBERAY, KWOK, ADAPTER, EVENTING, SERVING_WEBHOOK, SERVICE_PROXY),
    *KUBERNETES["1.36"].values(),
    HELM,
)
"""In an order in which those that share packages follow one another."""


def build_all() -> None:
    """Build every component."""
    for component in EVERY_COMPONENT:
        build(component)


def cache_folder() -> Path:
    """Return the folder of built binaries: ``MUSTER_CLUSTER_CACHE``, else ``.cluster`` in the repository."""
    return Path(os.environ.get(CACHE_VARIABLE, REPOSITORY / ".cluster"))


@cache
def build(component: Component) -> Path:
    """Build a component, and print progress on standard error.

    Go itself skips what is up to date; that check takes about a second, once per component and run.

    Returns:
        The path of the binary; of the folder of binaries if there are several.
    """
    binary = cache_folder() / "bin" / component.name
    binary.parent.mkdir(parents=True, exist_ok=True)
    title = f"{component.name} ({pinned_version(component)})"
    print(f"building {title} ...", file=sys.stderr, flush=True)
    started = time.monotonic()
    flags = ["-trimpath", "-ldflags", _linker_flags(component), *_compiler_flags(component)]
    if component.edited:
        flags += ["-modfile", str(_edited_modules(component))]
    output = f"{binary}/" if component.packages else str(binary)
    _go(component.module, "build", *flags, "-o", output, component.package, *component.packages)
    print(f"built {title} in {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
    return binary


@cache
def module_folder(component: Component) -> Path:
    """Return the folder of the component's Go module, which contains its CRDs and manifests."""
    return _folder(component, _module_path(component))


@cache
def _folder(component: Component, module_path: str) -> Path:
    """Return the folder of a module in Go's module cache, into which it is downloaded if need be."""
    listing = ("list", "-m", "-f", "{{.Dir}}", module_path)
    folder = _go(component.module, *listing).strip()
    if not folder:
        _go(component.module, "mod", "download", module_path)
        folder = _go(component.module, *listing).strip()
    return Path(folder)


@cache
def pinned_version(component: Component) -> str:
    """Return the version of the component's Go module that ``go.mod`` pins."""
    return _go(component.module, "list", "-m", "-f", "{{.Version}}", _module_path(component)).strip()


def _edited_modules(component: Component) -> Path:
    # Beside the binaries also where `bin` is a link: Go compiles a module at another path again.
    folder = (cache_folder() / "bin").resolve().with_name(component.module)
    originals = {module: _folder(component, module) for module, _ in edits.EDITS}
    return edits.write_modules(folder, HERE / component.module / "go.mod", originals)


def certificate_maker() -> Path:
    """Build the generator of self-signed certificates of the Go distribution, and return its path.

    So the tests need neither openssl nor a Python package for one key pair.
    """
    binary = cache_folder() / "bin" / "generate-cert"
    if not binary.exists():
        source = Path(_go("etcd", "env", "GOROOT").strip(), "src/crypto/tls/generate_cert.go")
        binary.parent.mkdir(parents=True, exist_ok=True)
        _go("etcd", "build", "-trimpath", *_compiler_flags(ETCD), "-o", str(binary), str(source))
    return binary


def _module_path(component: Component) -> str:
    for prefix in (
        "k8s.io/kubernetes",
        "sigs.k8s.io/kwok",
        "sigs.k8s.io/lws",
        "knative.dev/eventing",
        "knative.dev/serving",
        "muster.dev/tests/cluster/knative",
        "github.com/kubeflow/trainer/v2",
        "helm.sh/helm/v3",
    ):
        if component.package.startswith(prefix):
            return prefix
    return component.package


def _linker_flags(component: Component) -> str:
    flags = "-s -w"
    if component.version:
        major, minor, _ = component.version.lstrip("v").split(".")
        variables = {"gitVersion": component.version, "gitMajor": major, "gitMinor": minor}
        flags += "".join(
            f" -X k8s.io/component-base/version.{name}={value}" for name, value in variables.items()
        )
    return flags


def _compiler_flags(component: Component) -> list[str]:
    """Return the flags for each pattern of packages; the last pattern that matches a package applies.

    The standard library has the same flags in every component, so it is compiled once. No debug information;
    one thread per compiler, because Go starts one compiler per core.
    """
    lean = "-dwarf=false -c=1"
    seldom_called = CLIENTS_AND_RULES if component.inlined else ("all",)
    flags = {"all": lean} | dict.fromkeys(seldom_called, f"{lean} -l") | {"std": lean}
    return [f"-gcflags={packages}={how}" for packages, how in flags.items()]


def _go(module: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["go", *arguments],
            cwd=HERE / module,
            # Less garbage collection in some thousand short-lived compiler processes.
            env={"GOGC": "400", **os.environ},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise BuildFailed(
            "the real control plane is built from source: Go 1.26 or newer must be on PATH"
        ) from None
    if done.returncode:
        raise BuildFailed(f"go {' '.join(arguments)} in tests/cluster/{module}:\n{done.stderr}")
    return done.stdout
