"""What people hand to `muster` in files: events and clusters, with the place of whatever is wrong in them."""
