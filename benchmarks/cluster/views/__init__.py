"""The forms in which stored objects are shown: tables, metadata only, another group's kind."""
