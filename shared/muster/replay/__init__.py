"""Events and clusters on record: writing them down as they come, and playing them back."""
