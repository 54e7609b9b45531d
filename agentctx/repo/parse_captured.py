"""Files of all languages but Python -> FileSyntax, by the captures of their queries (docs/languages.md)."""

from __future__ import annotations

from agentctx.repo import captured_refs, languages
from agentctx.repo.captured import captured
from agentctx.repo.captured_defs import definitions
from agentctx.repo.captured_symbols import give_ids, symbols
from agentctx.repo.comment_lines import CommentLines
from agentctx.repo.local_uses import local_uses
from agentctx.repo.parse_blocks import BlockWalk, Extent
from agentctx.repo.parse_place import finish, unit_at
from agentctx.repo.python_defs import Ids
from agentctx.repo.resolvers.families import import_reader
from agentctx.repo.trees import matches_of, tree_of
from agentctx.source import FileSyntax, SourceFile


def parse_captured(file: SourceFile, language: str) -> FileSyntax:
    """All that can be said of one file in `language` by itself."""
    row = languages.LANGUAGES[language]
    root, text = tree_of(file.data, language)
    matches = matches_of(root, language)
    found = captured(matches)
    lines = CommentLines(text, found.comments)
    defined = definitions(file.data, found, row.wrappers, row.no_locals)
    give_ids(defined, Ids(file.path))
    extents = [
        Extent(one.start, one.end, one.body, number, one.inside) for number, one in enumerate(defined) if one.holds
    ]
    drafts = BlockWalk(lines, found, extents).run(root)
    units = finish(drafts, lines, lambda key: defined[key].id if key is not None else None)
    at = unit_at(units)
    holders = [one for one in defined if one.holds]
    names = captured_refs.collect(
        path=file.path,
        data=file.data,
        matches=matches,
        definitions=[(one.start, one.end, one.id) for one in holders],
        functions=[(one.start, one.end) for one in holders if not one.is_type],
        unit_at=at,
        read_imports=import_reader(language),
    )
    return FileSyntax(
        path=file.path,
        language=language,
        digest=file.digest,
        units=units,
        symbols=symbols(
            file.data,
            file.path,
            defined,
            lines,
            at,
            row.tests,
            in_tests=file.is_test,
            values=names.values,
            types=names.types,
        ),
        references=names.references,
        imports=names.imports,
        exports=tuple(names.exports),
        export_units=tuple(names.exports.values()),
        n_errors=len(found.errors),
        is_test=file.is_test,
        package=names.package,
        locals=local_uses(units, at, names.locals),
    )
