"""From a task to a selection: the order of the stages. Shells (`cli`, `lsp`) call it and print what it reports."""
