"""What the conditions of an owner say about its groups."""
