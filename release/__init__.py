"""What a release page carries: wheel, manifests, Helm chart, bill of materials and checksums."""
