"""The contract cases of a broker, a module for each subject."""
