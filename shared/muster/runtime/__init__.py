"""The only room that speaks HTTP: a step becomes a Flask app here."""
