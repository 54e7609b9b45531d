"""Ranking: what a task is about -> features of every chunk -> a small learned model -> scores with reasons.

`chunks`: what is ranked. `queries`, `text`, `literals`, `names`: what the evidence says, and where the code says it
too. `nodes`, `walks`: the chunks as a graph, and how near each is to the failing tests. `features`: the table of
the features of chunks, `parts`: those of single units. `model`: the trees, in numpy; `score` puts all of it together.
"""
