"""Results as pictures and one HTML page: `figures` says what to draw, `drawing` draws it, `page` binds them."""
