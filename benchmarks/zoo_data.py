"""The zoo's networks on the data that are here."""

import argparse
import os
from collections.abc import Callable
from typing import Any

from ebnet.errors import EbnetError
from ebnet.recipe.settings import Data
from ebnet.zoo import cards


def parser_for(description: str | None) -> argparse.ArgumentParser:
    """With the options that say where data sets lie, and `--json`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", default=[], metavar="NAME=FOLDER", help="may be repeated")
    parser.add_argument("--json", action="store_true")
    return parser


def for_each_network(places: list[str], measure: Callable[[str, Data], dict[str, Any]]) -> list[dict[str, Any]]:
    """What `measure` finds of each network and its data; of those whose data are not here, the reason."""
    folders = dict(place.split("=", 1) for place in places)
    found = []
    for name, card in cards().items():
        data = Data(**card.data)
        if data.name in folders:
            data = data.model_copy(update={"root": os.path.abspath(folders[data.name])})
        try:
            found.append(measure(name, data))
        except EbnetError as error:
            found.append({"network": name, "not_available": str(error)})
    return found
