"""The npm package in Node, asked from Python."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

STATIC = Path(__file__).resolve().parents[2] / "src" / "ebnet" / "web" / "static"


def node(script: str, **given: Any) -> Any:
    """What a module returns: `load` and `EbnetError` are imported, `given` is in scope, `tell(value)` is the result."""
    if shutil.which("node") is None:
        pytest.skip("no Node on this machine")
    source = "\n".join(
        [
            'import { readFileSync, writeSync } from "node:fs";',
            f"import {{ EbnetError, load }} from {json.dumps((STATIC / 'ebnet.js').as_uri())};",
            "const tell = (value) => writeSync(1, JSON.stringify(value));",
            f"const {{ {', '.join(given)} }} = JSON.parse(readFileSync(0));" if given else "",
            script,
        ]
    )
    command = ["node", "--input-type=module", "--eval", source]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
