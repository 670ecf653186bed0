"""The fields of objects before they are stored: decoded, defaulted, dropped, and set by the server."""
