"""Type checkers and language servers that are asked what is right: pyright, tsc and tsserver."""
