"""The schemas of the reply events as files, for teams that hang steps of their own on them.

python -m tests.schemas.replies     writes them anew from shared/muster/events/replies.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from muster.data import EVENTING
from muster.events.replies import REPLIES

FOLDER = EVENTING / "schemas" / "replies"


def schemas() -> dict[Path, str]:
    """JSON Schema (2020-12) of the data of every reply event, by file."""
    return {
        FOLDER / f"{name}.json": _schema(name, model.model_json_schema()) for name, model in REPLIES.items()
    }


def _schema(name: str, schema: dict[str, Any]) -> str:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | schema | {"title": name}, indent=1) + "\n"


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in schemas().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
