"""Where a run lives: the directory's layout, its checkpoints, states, results, metrics and lock, known here alone."""
