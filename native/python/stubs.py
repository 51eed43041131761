"""Write the types of the native module, as built and installed, to src/ebnet/_native: python native/python/stubs.py"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

STUBS = Path(__file__).resolve().parents[2] / "src" / "ebnet" / "_native"
ARRAY = """
Scalar = TypeVar("Scalar", bound=numpy.generic)
Array = NDArray[Scalar] | Tensor  # in C order, on the CPU, of exactly this type
"""


def stubs() -> dict[str, str]:
    """The text of each stub by its file's name: nanobind's, with arrays named shortly, formatted."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-r", "-m", "ebnet._native", "-O", directory]
        subprocess.run(command, check=True)
        return {path.name: formatted(named(path.read_text())) for path in Path(directory, "_native").glob("*.pyi")}


def named(text: str) -> str:
    """Annotated[NDArray[T], dict(...)] as Array[T]: the core takes numpy's and torch's arrays alike."""
    text = re.sub(r"Annotated\[NDArray(\[[\w.]+\])?, dict\(.*?\)\]", lambda m: f"Array{m[1] or '[Any]'}", text)
    if "Array[" not in text:
        return text
    head, _, rest = text.partition("from numpy.typing import NDArray\n")
    head = head.replace("from typing import Annotated\n", "from typing import Any, TypeVar\n")
    head = head if "import numpy\n" in head else f"{head}import numpy\n"
    imports, blank, body = rest.partition("\n\n")
    return f"{head}from numpy.typing import NDArray\nfrom torch import Tensor\n{imports}{blank}{ARRAY}\n{body}"


def formatted(text: str) -> str:
    for command in (["check", "--fix", "-q", "--select", "I,F401"], ["format", "-q"]):
        words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUBS / "stub.pyi"), "-"]
        text = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    STUBS.mkdir(exist_ok=True)
    for name, text in stubs().items():
        (STUBS / name).write_text(text)
        print(STUBS / name)
