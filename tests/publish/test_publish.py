"""A run becomes a network of the zoo."""

from pathlib import Path

from ebnet import zoo
from ebnet.publish.evaluate import evaluate_packed
from ebnet.recipe.settings import Data
from tests.tiny_run import TinyRun
from tests.zoo.test_zoo import run


def test_a_run_of_ones_own_is_published(tmp_path: Path, tiny_run: TinyRun) -> None:
    done = run("zoo", "add", str(tiny_run.run), "mine", "--title", "digits", "--into", "shelf", where=tmp_path)
    assert done.returncode == 0, done.stderr
    card = zoo.Card.from_json((tmp_path / "shelf" / "mine.json").read_text())
    again = evaluate_packed(tmp_path / "shelf" / "mine.ebn", Data(**card.data))
    assert again.top1 == card.top1
    assert card.bytes == (tmp_path / "shelf" / "mine.ebn").stat().st_size
