"""The engine's Python face: packed files run here without torch."""
