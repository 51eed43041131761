"""From a finished run to a network that others use: packed, evaluated in the engine, with its card in the zoo."""
