"""A hook of mkdocs: the page to draw, drop or film as a file of the site, with the digits network inside."""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from ebnet.web.live import live_page

NETWORK = "zoo:digits-e4"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """One file and not the folder of `ebnet export-web`: it works from a disk too, where browsers load no modules."""
    files.append(File.generated(config, "try.html", content=live_page(NETWORK)))
    return files
