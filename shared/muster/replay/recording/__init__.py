"""Record the events and objects of a cluster into files, without secrets."""
