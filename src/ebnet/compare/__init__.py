"""Methods side by side: one recipe, one budget, paired seeds."""
