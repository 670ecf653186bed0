"""The groups of an owner: those that it should have, their counts, their gates, and their manifests."""
