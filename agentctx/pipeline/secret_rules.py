"""What a secret looks like: names of files, and texts with a form of their own. Pure.

Few rules that are nearly always right: what they find is taken out of the prompt, and a wrong finding costs the model
a line of code. Hence no rule goes by entropy alone, and examples with a word such as `example` in them stay.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

LEAST_ENTROPY = 3.5  # bits per character of an assigned value; words and names have less

_FILES = re.compile(
    r"""\.env(\.(?!(example|sample|template|dist|defaults?)\Z).+)? | .+\.env | \.envrc
    | .+\.(pem|key|p12|pfx|jks|keystore|kdbx|asc|gpg|ppk|ovpn|tfvars|tfstate) | .+\.(tfvars|tfstate)\..+
    | id_(rsa|dsa|ecdsa|ed25519)([-_.].+)? | \.npmrc | \.pypirc | \.netrc | _netrc | \.git-credentials | \.dockercfg
    | \.htpasswd | \.pgpass | \.my\.cnf | \.s3cfg | \.boto | credentials
    | (.*[-_.])?credentials?\.(json|ya?ml|toml|ini|txt|csv)
    | (.*[-_.])?secrets?\.(json|ya?ml|toml|ini|txt|env) | (.*[-_.])?service[-_]?account.*\.json | kubeconfig""",
    re.VERBOSE | re.IGNORECASE,
)
_FOLDERS = frozenset({".aws", ".ssh", ".gnupg", ".docker", ".kube"})
_PUBLIC = re.compile(r"id_\w+\.pub", re.IGNORECASE)


def file_reason(path: str) -> str | None:
    """Why the whole file stays on this machine; None for others. Path from the repository's root, with slashes."""
    place = PurePosixPath(path)
    if _PUBLIC.fullmatch(place.name):
        return None
    if _FILES.fullmatch(place.name) or _FOLDERS & set(place.parts[:-1]):
        return "not sent to another machine: by its name it holds secrets"
    return None


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text: characters `start` to `end` are the value itself."""

    kind: str
    start: int
    end: int


# (kind, pattern): the group `v`, or all of it, is the value.
_TOKENS: tuple[tuple[str, str], ...] = (
    (
        "private-key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----[A-Za-z0-9+/=\s\\\"',:.#*-]{40,20000}?"
        r"(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|(?![A-Za-z0-9+/=\s\\\"',:.#*-]))",
    ),
    ("aws-key-id", r"\b(AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    ("github-token", r"\b(gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b"),
    ("gitlab-token", r"\bgl(pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat)-[A-Za-z0-9_-]{20,}"),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai-key", r"\bsk-(proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{32,}\b"),
    ("huggingface-token", r"\b(hf|api_org)_[A-Za-z]{30,}\b"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{10,}"),
    ("slack-webhook", r"https://hooks\.slack\.com/(services|workflows)/(?P<v>[A-Za-z0-9/_-]{20,})"),
    ("stripe-key", r"\b[srw](k|hsec)_(live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ("google-api-key", r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("google-oauth", r"\b(GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,})"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("twilio-key", r"\b(SK|AC)[0-9a-f]{32}\b"),
    ("digitalocean-token", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    ("vault-token", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("telegram-token", r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("azure-key", r"\bAccountKey=(?P<v>[A-Za-z0-9+/]{40,}={0,2})"),
    ("url-password", r"\b[a-z][a-z0-9+.-]{1,20}://(?P<v>[^\s:/@'\"`<>{}$%]{0,64}:[^\s:/@'\"`<>{}$%]{3,128})@"),
    (
        "bearer-token",
        r"(?i:\bauthorization['\"]?\s*[:=]\s*['\"]?(bearer|basic|token)\s+)(?P<v>[A-Za-z0-9._~+/=-]{16,})",
    ),
)
_ASSIGNED = re.compile(
    r"""(?i:(api[_-]?key|secret|token|passw(or)?d|access[_-]?key|private[_-]?key|auth[_-]?key|credential)\w{0,20})
    ['"]?\s{0,4}(:=|=>|[:=])\s{0,4}(?P<q>['"`]?)(?P<v>[A-Za-z0-9+/_=-]{20,256})(?P=q)(?![\w+/=.(\[-])""",
    re.VERBOSE,
)
_RULES = tuple((kind, re.compile(pattern, re.DOTALL)) for kind, pattern in _TOKENS)
_EXAMPLE = re.compile(
    r"example|dummy|placeholder|changeme|your[-_]|xxxx|0000000|redacted|AGENTCTX_SECRET", re.IGNORECASE
)
_PASSWORD_WORDS = frozenset({"password", "passwd", "pass", "pwd", "secret", "user", "postgres", "root"})


def find_secrets(text: str) -> Iterator[Found]:
    """Every secret in a text, in order; none overlaps another."""
    end = 0
    for found in sorted(_all(text), key=lambda one: (one.start, -one.end)):
        if found.start >= end:
            yield found
            end = found.end


def _all(text: str) -> Iterator[Found]:
    for kind, rule in _RULES:
        for match in rule.finditer(text):
            start, end = match.span("v" if "v" in rule.groupindex else 0)
            if not _is_example(kind, text[start:end]):
                yield Found(kind, start, end)
    for match in _ASSIGNED.finditer(text):
        if _is_random(match["v"]):
            yield Found("assigned-secret", *match.span("v"))


def _is_example(kind: str, value: str) -> bool:
    if kind == "private-key":
        return not re.search(r"[A-Za-z0-9+/=]{40}", value)  # the words alone, as in code that looks for keys
    if kind == "url-password":
        return value.rpartition(":")[2].lower() in _PASSWORD_WORDS or bool(_EXAMPLE.search(value))
    return bool(_EXAMPLE.search(value))


def _is_random(value: str) -> bool:
    """Letters and digits mixed as no name is; the rule for values that have no form of their own."""
    if _EXAMPLE.search(value) or not re.search(r"\d", value) or not re.search(r"[A-Za-z]", value):
        return False
    return _entropy(value) >= LEAST_ENTROPY


def _entropy(value: str) -> float:
    counts = Counter(value).values()
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts)
