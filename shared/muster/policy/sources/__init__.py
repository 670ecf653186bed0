"""Policy sources: where a policy can be, its schema, and which one takes effect."""
