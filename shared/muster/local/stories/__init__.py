"""The stories of `muster run`: objects as a user writes them, and laws of what happens to them."""
