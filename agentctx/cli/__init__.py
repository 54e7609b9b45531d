"""The command line: options -> config -> pipeline -> print. The only place, with `lsp.server`, that chooses engines."""
