"""The four patch types: JSON patch, merge patch, strategic merge patch and server-side apply."""
