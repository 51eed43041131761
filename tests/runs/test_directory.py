"""What could spoil a run is noticed before anything is written."""

from pathlib import Path

import pytest

from ebnet.errors import ConfigError, DataError, NonFiniteError
from ebnet.runs.starts import STARTS
from ebnet.train import RunDirectory, train
from tests.train.tiny import pictures, tiny

ONE = {"stages": ["teacher"], "stage": {}, "schedule__batch_size": 16, "schedule__epochs": 1}


def _content(directory: Path) -> dict[str, bytes]:
    """All but the list of starts, which gains a line by every one."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != STARTS]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    train(tiny(**ONE), tmp_path / "run", datasets=pictures())
    return tmp_path / "run"


def test_a_changed_recipe_is_refused_and_the_difference_shown(begun: Path) -> None:
    before = _content(begun)
    with pytest.raises(ConfigError) as error:
        train(tiny(**ONE, network__experts=5, schedule__learning_rate=0.5), begun, datasets=pictures())
    message = str(error.value)
    for line in ("-network.experts = 2", "+network.experts = 5", "-schedule.learning_rate = 0.01", "another recipe"):
        assert line in message
    assert "epochs" not in message
    assert _content(begun) == before


def test_settings_that_do_not_touch_the_weights_may_change(begun: Path) -> None:
    changed = tiny(**ONE, log__log_steps=7, data__workers=1, description="moved").changed({"data.root": "/elsewhere"})
    train(changed, begun, datasets=pictures())
    assert RunDirectory(begun).recipe() == changed


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="holds something else than a training run"):
        train(tiny(**ONE), tmp_path, datasets=pictures())
    with pytest.raises(ConfigError, match="is a file, not a directory"):
        train(tiny(**ONE), tmp_path / "thesis.txt", datasets=pictures())
    assert _content(tmp_path) == {"thesis.txt": b"years of work"}


def test_two_processes_cannot_train_in_one_directory(begun: Path) -> None:
    with RunDirectory(begun).claimed(tiny(**ONE)), pytest.raises(ConfigError, match="another process is training"):
        train(tiny(**ONE), begun, datasets=pictures())


def test_missing_data_leaves_no_trace(tmp_path: Path) -> None:
    recipe = tiny(**ONE, data__name="cifar10", data__in_memory=False).changed({"data.root": str(tmp_path / "none")})
    with pytest.raises(DataError, match="none"):
        train(recipe, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_diverging_run_keeps_its_last_good_checkpoint(tmp_path: Path) -> None:
    recipe = tiny(**(ONE | {"schedule__epochs": 20}), schedule__learning_rate=1e30, log__checkpoint_steps=1)
    with pytest.raises(NonFiniteError, match="no longer a number"):
        train(recipe, tmp_path / "run", datasets=pictures())
    before = _content(tmp_path / "run")
    with pytest.raises(NonFiniteError, match="no longer a number"):
        train(recipe, tmp_path / "run", datasets=pictures())
    assert _content(tmp_path / "run") == before


def test_a_directory_that_is_no_run_cannot_be_evaluated(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"is not the directory of a training run: it has no recipe\.toml"):
        RunDirectory(tmp_path).recipe()
