"""How names are looked up, per language family: one module each, all on the same engine. See docs/languages.md."""
