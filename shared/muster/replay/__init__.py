"""Record events and objects of clusters into files, and replay them."""
