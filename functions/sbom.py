"""Write the bill of materials of the images, as CycloneDX with package URLs and hashes: `make sbom`.

It lists what requirements.txt locks. The same lock file gives the same bytes.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

LOCKED = Path(__file__).parents[1] / "requirements.txt"


def bill_of_materials(locked: str) -> str:
    """Return the bill of materials of a locked requirements file, as CycloneDX JSON."""
    subject = Component(
        name="muster-gangs",
        version=version("muster-gangs"),
        type=ComponentType.APPLICATION,
        bom_ref="muster-gangs",
    )
    parts = []
    for name, release, hashes in re.findall(
        r"^([a-z0-9._-]+)==(\S+)((?: .*)?\n(?:    .*\n)*)", locked, re.MULTILINE
    ):
        digests = re.findall(r"sha256:([0-9a-f]{64})", hashes)
        parts.append(
            Component(
                name=name,
                version=release,
                bom_ref=f"{name}=={release}",
                purl=PackageURL("pypi", name=name, version=release),
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in digests],
            )
        )
    # A random number and the time of the day would make each file another.
    bom = Bom(
        components=parts,
        serial_number=uuid5(NAMESPACE_URL, f"{subject.name}/{subject.version}/{locked}"),
        metadata=BomMetaData(component=subject, timestamp=datetime(2020, 2, 2, tzinfo=UTC)),
    )
    bom.register_dependency(subject, parts)
    output: str = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    return output + "\n"


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(bill_of_materials(LOCKED.read_text()))
