"""What the API server refuses, kind by kind, in the words of the real one."""
