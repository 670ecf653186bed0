"""The steps: one folder each, one reaction to one kind of event."""
