"""Read and write Kubernetes objects; the only package that imports `kubernetes`."""
