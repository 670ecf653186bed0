"""CloudEvents become facts here: what happened to which object. Pure."""
