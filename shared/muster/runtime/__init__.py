"""Serve steps over HTTP; the only package that imports Flask."""
