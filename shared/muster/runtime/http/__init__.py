"""Requests and answers over HTTP: the Flask app, the limits of both servers, the answer to each event."""
