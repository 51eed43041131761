"""A folder for any web host: the page, the engine and one network; nothing is computed elsewhere."""

from pathlib import Path

from ebnet.errors import ConfigError
from ebnet.files import write_atomically
from ebnet.runtime.engine import load
from ebnet.web.static_files import content

NETWORK = "net.ebn"
FILES = {
    "page.css": "page.css",
    "page.js": "page.js",
    "answers.js": "browser.js",
    "ebnet.js": "ebnet.js",
    "offline.js": "offline.js",
    "index.html": "index.html",
}
"""What a folder has besides the network, and the package's file it is; the page itself comes last."""

AT_ONCE = """<link rel="modulepreload" href="answers.js">
<link rel="modulepreload" href="ebnet.js">
<link rel="preload" href="net.ebn" as="fetch" crossorigin>
</head>"""
"""Asked for with the page itself: one script after the other would tell of the next."""


def export(source: str | Path, folder: Path) -> list[Path]:
    """Write the folder for a packed file or `zoo:NAME`; a file that the engine refuses is refused here.

    Returns: the files written.
    """
    engine = load(source)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder to write to")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / NETWORK).exists():
        raise ConfigError(f"{folder} holds other files; name a new folder, or one that `ebnet export-web` wrote")
    folder.mkdir(parents=True, exist_ok=True)
    contents = {NETWORK: Path(engine.path).read_bytes()} | {name: content(of) for name, of in FILES.items()}
    contents["index.html"] = contents["index.html"].replace(b"</head>", AT_ONCE.encode())
    for name, data in contents.items():
        write_atomically(folder / name, data)
    return [folder / name for name in contents]
