"""The task, the packed prompt, its tokens, pins and selection, the answer: the data that flows. Pure.

Import from here; the modules behind it hold one subject each.
"""

from agentctx.prompt.answer import Completion, EditPatch, FileEdit, Hunk
from agentctx.prompt.arrays import Float32, Int32, readonly
from agentctx.prompt.conversation import Conversation
from agentctx.prompt.document import (
    AbsentStatement,
    Definition,
    Need,
    NeedKind,
    PackFacts,
    PromptDocument,
    PromptFile,
    PromptLink,
    PromptUnit,
    Section,
)
from agentctx.prompt.models import ChatFrame, ModelInfo
from agentctx.prompt.omissions import Omission, OmissionAction, OmissionReport, SymbolState
from agentctx.prompt.selection import PIN_TIERS, Finding, KeptUnit, Pin, PinReason, Pins, Selection, Why
from agentctx.prompt.task import ChangeSource, Evidence, FileChange, FocusRef, Frame, Task, TestRef
from agentctx.prompt.tokens import SparsePrompt, TokenizedPrompt, Tokenizer, TokenScores

__all__ = [
    "PIN_TIERS",
    "AbsentStatement",
    "ChangeSource",
    "ChatFrame",
    "Completion",
    "Conversation",
    "Definition",
    "EditPatch",
    "Evidence",
    "FileChange",
    "FileEdit",
    "Finding",
    "Float32",
    "FocusRef",
    "Frame",
    "Hunk",
    "Int32",
    "KeptUnit",
    "ModelInfo",
    "Need",
    "NeedKind",
    "Omission",
    "OmissionAction",
    "OmissionReport",
    "PackFacts",
    "Pin",
    "PinReason",
    "Pins",
    "PromptDocument",
    "PromptFile",
    "PromptLink",
    "PromptUnit",
    "Section",
    "Selection",
    "SparsePrompt",
    "SymbolState",
    "Task",
    "TestRef",
    "TokenScores",
    "TokenizedPrompt",
    "Tokenizer",
    "Why",
    "readonly",
]
