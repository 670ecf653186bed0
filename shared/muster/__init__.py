"""The rooms every function shares: objects, policy, events, cluster, runtime."""
