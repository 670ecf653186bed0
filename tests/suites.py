"""Runs test suites of other projects against the embedded API server: ``python -m tests.suites [kopf kr8s]``.

Each suite is that of a source distribution from PyPI, in a virtual environment of its own below build/suites.
docs/apiserver.md shows the pass rates. Needs kubectl: the one that `tests.cluster` builds, else that in PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from muster.testing import EmbeddedCluster
from tests.cluster import modules

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "suites"
SECONDS = 900
"""A suite that takes longer is stopped."""

PYTEST_KIND = '''"""Stands for pytest-kind: the cluster is there already."""
import os, shutil, subprocess
from pathlib import Path

class KindCluster:
    def __init__(self, *_args, **_options):
        self.kubeconfig_path = Path(os.environ["SUITE_KUBECONFIG"])
        self.kubectl_path = Path(shutil.which("kubectl"))

    def create(self): ...

    def delete(self): ...

    def kubectl(self, *args, **_options):
        command = [str(self.kubectl_path), "--kubeconfig", str(self.kubeconfig_path), *args]
        return subprocess.check_output(command, encoding="utf-8")
'''
KEEP_CLUSTER = """def pytest_addoption(parser):
    parser.addoption("--keep-cluster", action="store_true")
"""


@dataclass(frozen=True)
class Suite:
    """The tests in a source distribution.

    Attributes:
        version: of the distribution.
        needs: the packages that its tests need.
        arguments: of pytest, in the folder of the distribution.
        files: modules that its tests import, by path.
    """

    version: str
    needs: tuple[str, ...]
    arguments: tuple[str, ...]
    files: Mapping[str, str]


SUITES = {
    "kopf": Suite(
        "1.45.2",
        (
            *("pytest", "pytest-aiohttp", "pytest-asyncio", "pytest-mock", "pytest-timeout", "looptime"),
            *("kmock", "freezegun", "certvalidator", "certbuilder", "pyngrok", "kubernetes", "pykube-ng"),
        ),
        ("tests/e2e", "examples", "--only-e2e", "--timeout", "120"),
        {},
    ),
    "kr8s": Suite(
        "0.20.15",
        (
            *("pytest", "pytest-asyncio", "pytest-timeout", "pytest-rerunfailures", "trio", "lightkube"),
            *("kubernetes", "kubernetes-asyncio", "kubernetes-validate", "pykube-ng"),
        ),
        (
            *("kr8s/tests", "-p", "keep_cluster", "-o", "addopts=", "--keep-cluster"),
            *("--timeout", "30", "--tb", "native"),
        ),
        {
            "pytest_kind/__init__.py": "",
            "pytest_kind/cluster.py": PYTEST_KIND,
            "keep_cluster.py": KEEP_CLUSTER,
        },
    ),
}
DEFAULT_ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
SYSTEM_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "coredns-0", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
    "spec": {"containers": [{"name": "coredns", "image": "coredns"}]},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "kubernetes", "namespace": "default"},
    "spec": {"ports": [{"name": "https", "port": 443}]},
}
USUAL = (DEFAULT_ACCOUNT, SYSTEM_POD, SERVICE)
"""What every cluster has, and the suites look for."""


def main(names: list[str]) -> int:
    """Run suites, all by default, and print what passed; the whole output is in build/suites/NAME.log."""
    for name in names or SUITES:
        folder = prepare(name, SUITES[name])
        with EmbeddedCluster(controllers=True, admission=False) as cluster:
            for body in USUAL:
                cluster.create(body)
            kubeconfig = BUILD / f"{name}.kubeconfig"
            kubeconfig.write_text(cluster.kubeconfig())
            outcomes = run(name, folder, kubeconfig)
        counts = Counter(outcome for outcome, _, _ in outcomes)
        sys.stdout.write(
            f"{name} {SUITES[name].version}: {counts['passed']} of {len(outcomes)} passed, {dict(counts)}\n"
        )
        for outcome, test, why in outcomes:
            if outcome in {"failure", "error"}:
                sys.stdout.write(f"  {outcome:8}{test}: {why}\n")
    return 0


def prepare(name: str, suite: Suite) -> Path:
    """Return the folder of an unpacked source distribution, with everything that it needs installed."""
    folder = BUILD / f"{name}-{suite.version}"
    environment = BUILD / f"venv-{name}"
    if not environment.exists():
        venv.create(environment, with_pip=True)
        pip = [str(environment / "bin" / "pip"), "--quiet", "--disable-pip-version-check"]
        requirement = f"{name}=={suite.version}"
        source = ["download", "--no-deps", "--no-binary", name, "--dest", str(BUILD), requirement]
        subprocess.run([*pip, *source], check=True)
        with tarfile.open(BUILD / f"{folder.name}.tar.gz") as archive:
            archive.extractall(BUILD, filter="data")
        subprocess.run([*pip, "install", str(folder), *suite.needs], check=True)
    for path, text in suite.files.items():
        (BUILD / "modules" / path).parent.mkdir(parents=True, exist_ok=True)
        (BUILD / "modules" / path).write_text(text)
    return folder


def run(name: str, folder: Path, kubeconfig: Path) -> list[tuple[str, str, str]]:
    """Run the tests; return outcome, name and the reason of each."""
    built = modules.cache_folder() / "bin" / "kubectl"
    binary = built if built.exists() else Path(shutil.which("kubectl") or "kubectl")
    results = BUILD / f"{name}.xml"
    environment = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "SUITE_KUBECONFIG": str(kubeconfig),
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(BUILD / "modules"),
    }
    python = BUILD / f"venv-{name}" / "bin" / "python"
    command = [str(python), "-m", "pytest", *SUITES[name].arguments, "-q", f"--junit-xml={results}"]
    with (BUILD / f"{name}.log").open("w") as log:
        subprocess.run(
            command, cwd=folder, env=environment, stdout=log, stderr=log, timeout=SECONDS, check=False
        )
    return [_outcome(case) for case in ET.parse(results).iter("testcase")]  # noqa: S314 - our own file


def _outcome(case: ET.Element) -> tuple[str, str, str]:
    test = f"{case.get('classname', '')}.{case.get('name', '')}"
    for found in case:
        if found.tag in {"failure", "error", "skipped"}:
            return found.tag, test, (found.get("message") or "").strip().replace("\n", " ")[:150]
    return "passed", test, ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
