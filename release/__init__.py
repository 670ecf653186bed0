"""Build the files of a release: wheel, manifests, Helm chart and checksums."""
