"""The decisions of Muster. Pure: observed objects in, a plan out; no client, no clock."""
