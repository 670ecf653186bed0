"""A step of a team's own: tell a chat channel when a gang waits."""
