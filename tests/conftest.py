"""Settings for all tests."""

import os
import tempfile

# Some virtual machines announce AMX but hide its tile leaf; oneDNN's bf16 kernels would then end the process.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
from hypothesis import settings

from tests.browser import browser
from tests.groups import pytest_collection_modifyitems, pytest_xdist_make_scheduler
from tests.skipped import pytest_terminal_summary
from tests.tiny_run import tiny_run

__all__ = [
    "browser",
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "pytest_xdist_make_scheduler",
    "tiny_run",
]

settings.register_profile("ebnet", deadline=None, print_blob=True)
settings.load_profile("ebnet")


def pytest_configure(config: pytest.Config) -> None:
    """Choices of kernels are remembered in the user's cache; those of tests are not his."""
    cache = tempfile.TemporaryDirectory(prefix="ebnet-tests-")
    os.environ["XDG_CACHE_HOME"] = cache.name
    config.add_cleanup(cache.cleanup)
