"""What a run did, as data (`model`), as JSON with a schema, as text and as SARIF. Pure."""

from agentctx.report.model import (
    BudgetRow,
    CandidateRow,
    Change,
    CheckRow,
    Decision,
    EditRow,
    EngineRow,
    RepoRow,
    RunReport,
    SecretRow,
    UnitRow,
    exit_code,
)

__all__ = [
    "BudgetRow",
    "CandidateRow",
    "Change",
    "CheckRow",
    "Decision",
    "EditRow",
    "EngineRow",
    "RepoRow",
    "RunReport",
    "SecretRow",
    "UnitRow",
    "exit_code",
]
