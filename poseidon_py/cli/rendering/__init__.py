"""How answers are printed: tables, and plans of moves."""
