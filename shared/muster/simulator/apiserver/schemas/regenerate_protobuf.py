"""Write `protobuf-1.37.1.json.gz`: the fields of the protobuf messages of the kinds that are served.

    python -m muster.simulator.apiserver.schemas.regenerate_protobuf MODCACHE/k8s.io

MODCACHE is Go's module cache with the modules in `PACKAGES`. Numbers and types come from `generated.proto`;
names in JSON, and whether JSON shows a zero value, from the tags in the Go types. Field numbers never change,
so one file serves all releases; v1alpha2 of the scheduling API is added from the last release that has it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from muster.simulator.apiserver.schemas.regenerate import KINDS, write

NAME = "protobuf-1.37.1"
PACKAGES = (
    *(f"api@v0.37.1/{group}" for group in ("core/v1", "batch/v1", "coordination/v1", "scheduling/v1")),
    *(f"api@v0.37.1/{group}" for group in ("scheduling/v1beta1", "scheduling/v1alpha3", "policy/v1")),
    *(f"api@v0.37.1/{group}" for group in ("admissionregistration/v1", "authorization/v1", "autoscaling/v1")),
    "api@v0.37.1/authentication/v1",
    "api@v0.36.3/scheduling/v1alpha2",
    "apiextensions-apiserver@v0.37.1/pkg/apis/apiextensions/v1",
    "apimachinery@v0.37.1/pkg/apis/meta/v1",
    "apimachinery@v0.37.1/pkg/api/resource",
    "apimachinery@v0.37.1/pkg/runtime",
    "apimachinery@v0.37.1/pkg/util/intstr",
)

MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(
    r"^  (repeated |optional |required )?(map<string, ([\w.]+)>|[\w.]+) (\w+) = (\d+);", re.MULTILINE
)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
TAGS = re.compile(r'^\t(?:\w+\s+)?(\*?)\S+\s+`.*?json:"([^"]*)".*?protobuf:"\w+,(\d+)', re.MULTILINE)

Field = list[Any]
"""Name in JSON (empty for an inlined message), type, and flags: see `protobuf.Field`."""


def messages_of(folder: Path) -> dict[str, dict[str, Field]]:
    """Return the messages of a Go package by full name, each with its fields by number."""
    text = (folder / "generated.proto").read_text()
    found = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
    assert found is not None, folder  # noqa: S101 - every such file has a package
    package = found.group(1)
    go = "\n".join(path.read_text() for path in folder.glob("*.go") if not path.name.endswith("_test.go"))
    tags = {
        struct: {number: (pointer, json) for pointer, json, number in TAGS.findall(body)}
        for struct, body in STRUCT.findall(go)
    }
    return {
        f"{package}.{name}": {
            number: _field(package, field, tags.get(name, {}).get(number))
            for *field, number in FIELD.findall(body)
        }
        for name, body in MESSAGE.findall(text)
    }


def _field(package: str, field: list[str], tag: tuple[str, str] | None) -> Field:
    label, whole, map_value, name = field
    type_name = map_value or whole
    if "." in type_name:
        type_name = type_name.removeprefix(".")
    elif type_name[0].isupper():
        type_name = f"{package}.{type_name}"
    pointer, json = tag or ("", f"{name},omitempty")
    in_json, *options = json.split(",")
    shows_zero = bool(pointer) or not {"omitempty", "omitzero"} & set(options)
    flags = ("m" if map_value else "r" if label == "repeated " else "") + ("z" if shows_zero else "")
    return [in_json, type_name, flags]


def main(modules: Path) -> None:
    """Write the messages of `KINDS` and of DeleteOptions, and all that they refer to."""
    packages = [messages_of(modules / package) for package in PACKAGES]
    every = {name: message for package in packages for name, message in package.items()}
    meta = "k8s.io.apimachinery.pkg.apis.meta.v1."
    kinds = {"DeleteOptions": f"{meta}DeleteOptions"}
    for (group, version), names in KINDS.items():
        short = group.partition(".")[0] or "core"
        base = "k8s.io.apiextensions_apiserver.pkg.apis" if short == "apiextensions" else "k8s.io.api"
        for name in names.split():
            kinds[f"{group}/{version}/{name}".removeprefix("/")] = f"{base}.{short}.{version}.{name}"
    kept: dict[str, dict[str, Field]] = {}
    to_visit = list(kinds.values())
    while to_visit:
        name = to_visit.pop()
        if name not in kept:
            kept[name] = every[name]
            to_visit += [field[1] for field in kept[name].values() if "." in field[1]]
    write(NAME, {"kinds": kinds, "messages": dict(sorted(kept.items()))})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
