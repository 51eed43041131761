"""The words of a verdict; `ebnet.reproduce.verdict` has the rule."""

SHOWS, DOES_NOT_SHOW, UNDECIDED = "shows", "does not show", "undecided at this scale"
NOT_RUN = "not run"
