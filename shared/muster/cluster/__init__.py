"""The only room that talks to an API server: observe, execute, and the errors they meet."""
