"""Train every network of a small grid once and keep their accuracies: the table that `benchmarks/search.py` searches.

    python benchmarks/search_grid.py benchmarks/search_grid.toml --epochs 2 \\
        --out src/ebnet/search/tabulated/mnist5k.json
    python benchmarks/search_grid.py benchmarks/search_grid_one_epoch.toml --epochs 1 \\
        --out src/ebnet/search/tabulated/mnist5k-one-epoch.json

Each network is trained with Stage I of the recipe at a reduced schedule, on one thread. The file is written after each
network, and a second call goes on with what is missing.
"""

import argparse
import json
import tempfile
import time
from itertools import product
from pathlib import Path

from ebnet.files import write_atomically
from ebnet.search.candidate import Candidate
from ebnet.search.reduced import reduced_recipe
from ebnet.train import Pictures, load_recipe, train

BLOCKS = ("1111", "1112", "1121", "1211", "1122", "1212", "1221", "1222")
EXPANSIONS = ("0.25", "0.25:0.25:0.5:0.5", "0.5")
GROUPS = ("1:1:1:1", "1:1:4:4", "2:2:4:8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    recipe = load_recipe(arguments.recipe)
    pictures = Pictures.open(recipe.data)
    candidates = [Candidate.parse("-".join(parts)) for parts in product(BLOCKS, EXPANSIONS, GROUPS)]
    table = {
        "recipe": arguments.recipe.name,
        "epochs": arguments.epochs,
        "input_size": recipe.data.size,
        "network": recipe.network.config(pictures.val.num_classes, pictures.val.channels, 1).to_dict(),
        "accuracy": {},
    }
    if arguments.out.exists():
        before = json.loads(arguments.out.read_text())
        if {**before, "accuracy": {}} != table:
            parser.error(f"{arguments.out} is a table of other settings; remove it or use another --out")
        table = before
    for number, candidate in enumerate(candidates):
        if candidate.key in table["accuracy"]:
            continue
        start = time.process_time()
        with tempfile.TemporaryDirectory() as run:
            reduced = reduced_recipe(recipe, candidate, arguments.epochs, threads=1)
            result = train(reduced, run, datasets=(pictures.train, pictures.val))
        table["accuracy"][candidate.key] = result.last.top1
        write_atomically(arguments.out, (json.dumps(table, indent=1) + "\n").encode())
        seconds = time.process_time() - start
        print(f"{number + 1}/{len(candidates)} {candidate}: {result.last.top1:.2%}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
