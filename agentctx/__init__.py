"""agentctx: a context preprocessor for coding agents and IDEs.

Importing this package loads no machine-learning, editor or parser library.
"""

__version__ = "0.1.0"
