"""A packed network behind a local web page and a JSON endpoint."""
