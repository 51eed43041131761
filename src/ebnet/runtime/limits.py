"""How much a packed file may cost: bounds against crafted files, which a caller who trusts a file may set otherwise."""

from dataclasses import dataclass, fields

from ebnet.errors import ConfigError


@dataclass(frozen=True)
class Limits:
    """What one image may cost. None: as much as goes with the sizes of the file and of the image.

    Example: `ebnet.load("net.ebn", limits=ebnet.Limits(memory=4 << 30))`
    """

    work: int | None = None
    """Values read and written by all ops, bits counted in words of 64. Else 2^28 + pixels * bytes of the file / 8."""
    memory: int | None = None
    """Bytes of activations, scratch and experts laid out. Else 32 MiB + 2 KiB a pixel (at most 1 GiB) + 16 files."""
    side: int | None = None
    """Pixels of an image's height and width. Else 8192, and 1024 for the size in the file itself."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            most = 2**15 if field.name == "side" else 2**62
            if value is not None and not (whole and 1 <= value <= most):
                raise ConfigError(f"limits: {field.name}={value!r}: expected a whole number from 1 to {most}")

    def to_dict(self) -> dict[str, int]:
        """Those that are set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}
