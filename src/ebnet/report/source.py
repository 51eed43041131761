"""What a path is: a training run, a study, a comparison or a bench file; and its report."""

from pathlib import Path

from ebnet.errors import ConfigError
from ebnet.report.page import Report


def make_report(path: Path, bench: Path | None = None, data: Path | None = None) -> Report:
    """The report of whatever lies at `path`."""
    if path.is_file():
        from ebnet.report.speed import bench_report

        return bench_report(path)
    if (path / "recipe.toml").is_file():
        from ebnet.report.run import run_report

        return run_report(path, bench, data)
    if (path / "study.json").is_file():
        from ebnet.report.study import study_report

        return study_report(path)
    if (path / "standings").is_dir():
        from ebnet.report.comparison import comparison_report

        return comparison_report(path)
    if not path.exists():
        raise ConfigError(f"{path} does not exist; give a run, a study, a comparison or a bench file")
    raise ConfigError(
        f"{path} is neither a run (recipe.toml) nor a study (study.json) nor a comparison (standings/); "
        "for a bench, give its JSON file"
    )
