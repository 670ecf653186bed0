"""Muster's schemas as files that others read: of a policy and of the reply events."""
