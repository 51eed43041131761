"""A trained Stage II network -> one file that the engine runs, or ONNX; and the proof that both compute the same."""
