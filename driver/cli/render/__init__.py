"""How results are shown: tables, pictures, JSON. Decides nothing."""
