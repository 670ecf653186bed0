"""What the functions are measured beside: programs that do less, or do the same in another way."""
