"""The four ways to change an object by a patch: JSON patch, merge patch, strategic merge patch, server-side apply."""
