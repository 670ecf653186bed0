"""Everything Muster decides. Pure: what was observed goes in, a plan comes out; no client, no clock."""
