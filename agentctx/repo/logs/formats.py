"""All log formats. Their order decides nothing but the order of tests found at the same time.

A format is a class in a module of this package that is a `found.LogFormat`; its module is named in one line of one of
the two tables: `formats_scripts` (Python, JavaScript, anything) or `formats_others` (all other languages). Formats
don't know of each other: `found.LogFormat` says how they stay out of each other's logs.
"""

from __future__ import annotations

from agentctx.repo.logs.formats_others import OTHERS
from agentctx.repo.logs.formats_scripts import SCRIPTS
from agentctx.repo.logs.found import MakeFormat
from agentctx.repo.logs.junit_xml import JUnitXmlFormat

REPORT_FORMATS: tuple[MakeFormat, ...] = (JUnitXmlFormat,)
FORMATS: tuple[MakeFormat, ...] = (*SCRIPTS, *OTHERS)
