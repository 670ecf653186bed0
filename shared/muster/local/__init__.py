"""The whole stack on one machine, and the stories that `muster run` plays on it."""
