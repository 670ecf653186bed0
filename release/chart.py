"""The Helm chart: its files, and the archive that helm installs."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from release.templates import templates

OWN_FILES = Path(__file__).parent / "chart"
"""Files of the chart that are not made from eventing/."""


def chart(eventing: Path, version: str, image: str) -> dict[str, bytes]:
    """Return the files of the chart, by their path below its folder.

    Args:
        eventing: the folder eventing/.
        version: of the chart and of Muster.
        image: of all functions, `repository@sha256:…`, which values.yaml has as default.

    Raises:
        TemplateError: eventing/ does not fit the rules of release/templates.py.
    """
    made = {f"templates/{name}": text.encode() for name, text in templates(eventing).items()}
    own = {
        path.relative_to(OWN_FILES).as_posix(): path.read_bytes()
        for path in OWN_FILES.rglob("*")
        if path.is_file()
    }
    description = {
        "apiVersion": "v2",
        "name": "muster",
        "description": "Event-driven gang scheduling for Kubernetes with Knative functions",
        "type": "application",
        "kubeVersion": ">=1.36.0-0",
        "version": version,
        "appVersion": version,
    }
    chart_yaml = yaml.safe_dump(description, sort_keys=False).encode()
    values = _with_image(own["values.yaml"].decode(), image).encode()
    return own | made | {"Chart.yaml": chart_yaml, "values.yaml": values}


def _with_image(values: str, image: str) -> str:
    repository, _, digest = image.partition("@")
    block = f"image:\n  repository: {repository}\n  digest: {digest}\n"
    return re.sub(r"^image:\n(?:  .*\n)+", block, values, count=1, flags=re.MULTILINE)
