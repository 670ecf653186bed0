"""What `muster run` shows to people: the picture of a run, drawn once or followed live."""
