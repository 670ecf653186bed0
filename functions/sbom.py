"""Write the bill of materials of the images: `make sbom`.

It lists what requirements.txt locks, in CycloneDX 1.6 with package URLs, hashes and licences. Licences are
read from the installed packages. The same lock file gives the same bytes.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

LOCKED = Path(__file__).parents[1] / "requirements.txt"
_PINNED = re.compile(
    r"^(?P<name>[a-z0-9._-]+)==(?P<version>\S+)(?P<rest>(?: .*\\?\n(?:    .*\n)*))", re.MULTILINE
)
_TIME = datetime(2020, 2, 2, tzinfo=UTC)
"""That of the files in the wheel (hatchling's)."""
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_CLASSIFIER = "License :: OSI Approved :: "
_SPDX = {
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "ZPL 2.1": "ZPL-2.1",
    "The MIT License (MIT)": "MIT",
}
"""SPDX identifiers of licences that some packages spell in another way."""


def main(out: Path) -> None:
    """Write the bill of materials to `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(bill_of_materials(LOCKED.read_text()))
    print(f"Wrote {out}: CycloneDX {SchemaVersion.V1_6.to_version()}")  # noqa: T201


def bill_of_materials(locked: str) -> str:
    """Return the bill of materials of a locked requirements file, as CycloneDX JSON."""
    subject = Component(
        name="muster-gangs",
        version=version("muster-gangs"),
        type=ComponentType.APPLICATION,
        bom_ref="muster-gangs",
        licenses=[LicenseFactory().make_from_string("Apache-2.0")],
    )
    parts = [_component(match) for match in _PINNED.finditer(locked)]
    # A random number and the time of the day would make each file another.
    bom = Bom(
        components=parts,
        serial_number=uuid5(NAMESPACE_URL, f"{subject.name}/{subject.version}/{locked}"),
        metadata=BomMetaData(component=subject, timestamp=_TIME),
    )
    bom.register_dependency(subject, parts)
    output: str = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    return output + "\n"


def license_of(package: str) -> str:
    """Return an installed package's licence as SPDX expression; "" if not installed or it names none."""
    try:
        metadata = distribution(package).metadata.json
    except PackageNotFoundError:  # locked for another platform
        return ""
    classified = [
        entry.removeprefix(_CLASSIFIER)
        for entry in metadata.get("classifier", ())
        if entry.startswith(_CLASSIFIER)
    ]
    first_line = str(metadata.get("license", "")).strip().partition("\n")[0]
    spelled = str(metadata.get("license_expression", "")) or first_line or " OR ".join(classified)
    return _SPDX.get(spelled, spelled)


def _component(locked: re.Match[str]) -> Component:
    name, release = locked["name"], locked["version"]
    spelled = license_of(name)
    licenses = LicenseFactory()
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in _HASH.findall(locked["rest"])]
    return Component(
        name=name,
        version=release,
        bom_ref=f"{name}=={release}",
        purl=PackageURL("pypi", name=name, version=release),
        hashes=hashes,
        licenses=[licenses.make_from_string(spelled)] if spelled else [],
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
