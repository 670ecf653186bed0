"""Steps that a team owns, to copy."""
