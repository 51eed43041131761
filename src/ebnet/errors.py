"""Every error the project raises on purpose. Each message repeats the bad input and says what to do."""


class EbnetError(Exception):
    """Base of all errors that are the user's to fix; the command line prints them without a traceback."""


class ArchError(EbnetError, ValueError):
    """A network name does not follow the notation."""


class ConfigError(EbnetError, ValueError):
    """A setting of a layer, network, recipe or study is impossible."""


class ShapeError(EbnetError, ValueError):
    """A tensor does not have the shape or type that is expected."""


class NonFiniteError(EbnetError, ValueError):
    """NaN or infinity where a number is expected."""


class CheckpointError(EbnetError):
    """A saved model or state is missing, damaged or of another network."""


class DataError(EbnetError):
    """A data set is missing, damaged or not of the expected layout."""


class FormatError(EbnetError):
    """A packed file is damaged, hostile or of another version."""


class MissingFileError(FormatError, FileNotFoundError):
    """There is no packed file of that name."""


class Interrupted(EbnetError):
    """Ctrl-C or SIGTERM: the work was saved and can go on. `signal` is the number of the signal."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


class StudyError(EbnetError):
    """A search study is missing, damaged, of other settings, or its storage cannot be reached."""
