"""The language server: what the prompt keeps and drops of the files in an editor, and why. See `server`."""
