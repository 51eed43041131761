"""The page's files, as they are in the package.

`answers.js` is not among them: it is `server.js` where a server answers and `browser.js` where the page itself does.
`ebnet.js` is the engine as WebAssembly; web/build.py makes it.
"""

from importlib.resources import files

KINDS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
"""Media types by ending."""


def content(name: str) -> bytes:
    return files("ebnet.web").joinpath("static", name).read_bytes()


def text(name: str) -> str:
    return content(name).decode()
