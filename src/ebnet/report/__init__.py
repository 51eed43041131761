"""Everything people look at: figures as data, their two renderings, the one-file report and the demo."""
