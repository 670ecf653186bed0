"""Build the files of a release: wheel, manifests, Helm chart, bill of materials and checksums."""
