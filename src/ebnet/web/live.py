"""The page as one piece of HTML, engine and network inside, for a report or another page; it works from a file too."""

import base64
import re
from html import escape
from pathlib import Path

from ebnet.runtime.engine import load
from ebnet.web.static_files import text


def live_page(source: str | Path) -> str:
    """The whole page of a packed file or `zoo:NAME`, with nothing beside it."""
    network = base64.b64encode(Path(load(source).path).read_bytes()).decode()
    # What modules import of each other is simply there when they follow each other in one.
    joined = "\n".join(_unlinked(text(name)) for name in ("ebnet.js", "browser.js"))
    script = "\n".join(
        [
            f'globalThis.ebnetNetwork = Uint8Array.from(atob("{network}"), (letter) => letter.charCodeAt(0));',
            joined,
            "const [ask, describe] = [classify, network];",
            _unlinked(text("page.js")),
        ]
    )
    page = text("index.html")
    page = page.replace('<link rel="stylesheet" href="page.css">', f"<style>{text('page.css')}</style>")
    return page.replace('<script type="module" src="page.js"></script>', f'<script type="module">\n{script}</script>')


def live_panel(source: str | Path) -> str:
    """The page in a frame: an element for the body of another page, whose styles do not reach it."""
    return (
        '<iframe title="Try the network" loading="lazy" style="width:100%;height:720px;border:0"'
        f' allow="camera" srcdoc="{escape(live_page(source))}"></iframe>'
    )


def _unlinked(module: str) -> str:
    module = re.sub(r"^(import .*|export \{.*)\n", "", module, flags=re.MULTILINE)
    return re.sub(r"^export (?=const)", "", module, flags=re.MULTILINE)
