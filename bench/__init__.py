"""Benchmarks: each figure is measured beside its reference in the same run (`make bench`)."""
