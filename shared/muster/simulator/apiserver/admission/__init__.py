"""Admission: what the API server adds to objects and refuses, and the admission policies of the cluster."""
