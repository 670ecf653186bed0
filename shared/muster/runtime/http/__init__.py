"""HTTP: the Flask app, readiness, and the answer to each event."""
