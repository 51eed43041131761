"""Names of layers."""

import pytest

from ebnet.report.names import layer_code, layer_title


@pytest.mark.parametrize("name", ["stages.2.1.units.0.conv", "stages.2.1.0"])
def test_binary_layers_in_words(name: str) -> None:
    assert layer_title(name) == "stage 2, block 1, conv 0"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("stages.2.1.units.0.conv", "2.1.0 conv"),
        ("stages.2.1.0.shortcut.conv1", "2.1.0 shortcut.conv1"),
        ("stages.2.1.0", "2.1.0"),
        ("stem.conv1", "stem.conv1"),
    ],
)
def test_codes_for_axes(name: str, code: str) -> None:
    assert layer_code(name) == code
