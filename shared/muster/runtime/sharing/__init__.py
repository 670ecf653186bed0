"""What events share fairly: workers, CPU, memory, and the calls and time of each."""
