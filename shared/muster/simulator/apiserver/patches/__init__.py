"""The four ways to patch: JSON patch, merge patch, strategic merge patch, server-side apply."""
