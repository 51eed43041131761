"""What maintainers and services read: targets of make, workflows, templates, the citation, the end of a test run."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import ebnet

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def read(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict), path
    return found


def make(*words: str) -> str:
    asked = ["make", "--no-print-directory", *words]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def targets() -> set[str]:
    """The names after .PHONY: targets that people call, and no files."""
    found = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return set(found[1].split())


def test_make_alone_prints_every_target_with_a_line_each() -> None:
    listed = dict(re.findall(r"^make ([a-z-]+) {2,}(\S.*)$", make(), re.MULTILINE))
    assert set(listed) == targets()
    assert {"setup", "demo", "test", "test-all", "lint", "types", "docs", "wheel"} <= set(listed)


@pytest.mark.parametrize(
    ("changed", "says", "runs"),
    [
        ("pyproject.toml", "torch and the other packages", 'pip install -c constraints.txt -e ".[dev]"'),
        ("CMakeLists.txt", "the native core alone", "pip install -q --no-deps -e ."),
    ],
)
def test_an_environment_that_exists_is_kept(tmp_path: Path, changed: str, says: str, runs: str) -> None:
    """Only what has changed is installed, and a line before says what and for how long."""
    venv = tmp_path / ".venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").touch()
    (venv / ".installed").touch()
    asked = make("-n", f"--what-if={changed}", f"--assume-old={venv}/bin/python", f"VENV={venv}", "setup")
    assert "-m venv" not in asked
    assert says in asked.splitlines()[0]
    assert runs in asked
    assert len(re.findall("pip install", asked)) == 1


def test_a_new_environment_is_made_first(tmp_path: Path) -> None:
    first, second, *_ = make("-n", f"VENV={tmp_path}/new", "setup").splitlines()
    assert "Set-up, 1 of 2" in first
    assert second.endswith(f"-m venv {tmp_path}/new")


@pytest.mark.parametrize("path", [ROOT / ".ci" / "run", *WORKFLOWS], ids=lambda path: path.name)
def test_services_call_what_people_call(path: Path) -> None:
    """Every command of a workflow is a target of make or `.ci/run`, which is one."""
    called = re.findall(r"\bmake ((?:[a-z-]+ ?)+)", path.read_text()) if path.name == "run" else run_lines(path)
    names = {name for line in called for name in line.removeprefix("make ").split()}
    assert names <= targets() | {".ci/run"}
    assert names or path.name == "wheels.yml"


def run_lines(path: Path) -> list[str]:
    return [step["run"] for job in read(path)["jobs"].values() for step in job["steps"] if "run" in step]


def test_ci_runs_everything() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert {"lint", "types", "test-all"} <= set(script.split())
    assert '-m "not slow"' not in make("-n", "test-all")
    assert make("-n", "test").strip().endswith('-m "not slow"')


def test_workflows_end_and_may_only_read() -> None:
    assert {path.stem for path in WORKFLOWS} == {"tests", "wheels", "docs"}
    for path in WORKFLOWS:
        workflow = read(path)
        assert workflow["permissions"]["contents"] == "read"
        for name, job in workflow["jobs"].items():
            assert "timeout-minutes" in job or name == "publish", f"{path.name}: {name} may run for ever"


def test_templates_have_what_their_form_needs() -> None:
    forms = [read(path) for path in TEMPLATES if path.name != "config.yml"]
    assert len(forms) == 3
    for form in forms:
        assert {"name", "description", "body"} <= set(form)
        ids = [field["id"] for field in form["body"]]
        assert len(ids) == len(set(ids))
        assert all(field["attributes"]["label"] for field in form["body"])


def test_hooks_run_the_projects_own_tools() -> None:
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    assert [hook["id"] for hook in local["hooks"]] == ["ruff", "ruff-format", "mypy"]
    assert all(hook["entry"].startswith(".venv/bin/") and hook["language"] == "system" for hook in local["hooks"])


def test_the_citation_is_of_the_paper() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] in (ROOT / "LICENSE").read_text()
    paper = citation["preferred-citation"]
    assert paper["title"] == "High-Capacity Expert Binary Networks"
    assert [author["family-names"] for author in paper["authors"]] == ["Bulat", "Martinez", "Tzimiropoulos"]
    urls = PROJECT["project"]["urls"]
    assert (citation["repository-code"], paper["url"]) == (urls["Repository"], urls["Paper"])


def test_the_version_is_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    source = ROOT / PROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert f'__version__ = "{ebnet.__version__}"' in source.read_text()
    assert importlib.metadata.version("ebnet") == ebnet.__version__


def test_the_map_has_every_room() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rooms = [path.parent for path in (*ROOT.glob("src/ebnet/*/__init__.py"), *ROOT.glob("native/*/CMakeLists.txt"))]
    assert len(rooms) > 20
    aside = {"tests", "fuzz", "python"}  # of native: they are told of where they are used
    assert [room for room in rooms if f"`{room.relative_to(ROOT)}`" not in text and room.name not in aside] == []


def test_the_end_of_a_run_counts_what_was_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(3))\n"
        "def test_a(n): pytest.skip('no tiles here')\n"
        "@pytest.mark.skip(reason='by hand')\n"
        "def test_b(): pass\n"
        "def test_c(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skipped", "--rootdir", str(tmp_path), str(tmp_path)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "4 skipped, for 2 reasons" in said
    assert re.search(r"^ +3  no tiles here\n +1  by hand$", said, re.MULTILINE)


def test_files_and_documents_stay_together(tmp_path: Path) -> None:
    """Each group in one process, though both have work; the long ones are handed out first."""
    (tmp_path / "test_commands.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [f'docs/{d}.md: ebnet {c}' for d in ('zoo', 'engine', 'data') for c in 'abc'])\n"
        "def test_runs(n): pass\n"
        "def test_alone(): pass\n"
    )

    def pytest_says(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "tests.groups", *options, "--rootdir=.", str(tmp_path)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    ran = re.findall(r"\[(gw\d)\].* PASSED .*(zoo|engine|data|alone)", pytest_says("-v", "-n2", "--dist=loadfile"))
    assert len(ran) == 10
    assert len(set(ran)) == 4  # a process for each group
    assert {worker for worker, _ in ran} == {"gw0", "gw1"}
    listed = re.findall(r"docs/(\w+)\.md", pytest_says("--collect-only", "-q"))
    assert listed == ["engine"] * 3 + ["zoo"] * 3 + ["data"] * 3
