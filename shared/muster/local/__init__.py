"""Run the whole stack on one machine, and the stories of `muster run` on it."""
