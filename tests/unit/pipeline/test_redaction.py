"""Secrets: what is found, what is left alone, and that none comes out of a prompt or into a file."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from agentctx.edit.formats import edit_format
from agentctx.errors import EditError, EditRefused
from agentctx.pipeline.redaction import MARK, Guarded, Redaction, find
from agentctx.pipeline.secret_rules import file_reason, find_secrets
from agentctx.prompt import Definition, PromptDocument, PromptFile, PromptUnit, Section
from agentctx.source import SymbolKind, UnitKind
from agentctx.spans import ByteSpan, LineSpan
from agentctx.spec.signatures import line_of

# Made up, and put together here: no scanner of this repository should find them.
BODY = "\n".join(f"MIIEpAIBAAKCAQEAx{n}" + "Ab3dEf7hIjKlMn0pQrStUv" * 2 for n in range(4))
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{BODY}\nAbCdEf==\n-----END RSA {'PRIVATE'} KEY-----"
SECRETS = {
    "aws-key-id": "AKIA" + "QYLPMN5HHHFPZAM2",
    "github-token": "ghp_" + "a1B2c3D4e5" * 4,
    "gitlab-token": "glpat-" + "a1B2c3D4e5" * 2,
    "anthropic-key": "sk-ant-" + "api03-" + "a1B2c3D4e5" * 3,
    "openai-key": "sk-proj-" + "a1B2c3D4e5" * 4,
    "huggingface-token": "hf_" + "abcdefGHIJ" * 3 + "klmn",
    "slack-token": "xoxb-" + "123456789012-abcdefGHIJ",
    "slack-webhook": "https://hooks.slack.com/services/" + "T0AAAAAAA/B0AAAAAAA/a1B2c3D4e5f6",
    "stripe-key": "sk_live_" + "a1B2c3D4e5f6g7H8",
    "google-api-key": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "google-oauth": "GOCSPX-" + "a1B2c3D4e5" * 2,
    "npm-token": "npm_" + "a1B2c3D4e5f6" * 3,
    "pypi-token": "pypi-" + "AgEIcHlwaS5vcmc" * 4,
    "sendgrid-key": "SG." + "a1B2c3D4e5f6g7H8" + "." + "a1B2c3D4e5f6g7H8",
    "twilio-key": "SK" + "0a1b2c3d" * 4,
    "digitalocean-token": "dop_v1_" + "0a1b2c3d" * 8,
    "vault-token": "hvs." + "a1B2c3D4e5" * 3,
    "telegram-token": "123456789:" + "AA" + "a1B2c3D4e5f" * 3,
    "jwt": "eyJhbGciOiJI" + ".eyJzdWIiOiIx" + ".dozjgNryP4J3jVmN",
    "azure-key": "AccountKey=" + "a1B2c3D4e5" * 5,
    "url-password": "postgres://admin:" + "h8ndw0rk@db.internal/x",
    "bearer-token": "Authorization: Bearer " + "a1B2c3D4e5f6g7H8",
    "assigned-secret": 'aws_secret_access_key = "' + "wJalrXUtnFEMI7K7MDENGbPxRfiCYzQm1KLp0Aa9" + '"',
    "private-key": PEM,
}


@pytest.mark.parametrize("kind", sorted(SECRETS))
@pytest.mark.parametrize("frame", ["{}", "x = '''{}'''  # ok\n", 'log 12:00 sent "{}", went on\n', "A={}\nB=2\n"])
def test_every_kind_is_found_wherever_it_stands(kind: str, frame: str) -> None:
    text = frame.format(SECRETS[kind])
    found = list(find_secrets(text))
    assert [one.kind for one in found] == [kind]
    assert text[found[0].start : found[0].end] in SECRETS[kind]


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token(request.headers)",
        "password = os.environ['DATABASE_PASSWORD']",
        'secret_name = "projects/my-project/secrets/latest"',
        "self.access_token_expiration_in_seconds = access_token_expiration",
        'API_KEY = "your-api-key-goes-here-0123456789"',
        'aws = "AKIA' + 'IOSFODNN7EXAMPLE"',
        "digest = 'da39a3ee5e6b4b0d3255bfef95601890afd80709'",
        "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        "postgres://postgres:postgres@localhost/test",
        "https://user:{password}@host/  http://$USER:$PASS@host/",
        "if '-----BEGIN PRIVATE KEY-----' in text:\n    return find(text)\n",
        "sk-learn and skip-this-test-please-as-it-is-slow",
        "npm_config_registry = x; hf_hub_download(repo_id, filename)",
        "integrity sha512-" + "a1B2c3D4e5" * 8,
    ],
)
def test_code_that_only_speaks_of_secrets_stays(text: str) -> None:
    assert list(find_secrets(text)) == []


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.env.local",
        "prod.env",
        "key.pem",
        "x/id_rsa",
        "id_ed25519",
        ".npmrc",
        ".pypirc",
        ".netrc",
        "tls.key",
        "credentials",
        "a/credentials.json",
        "gcp-credentials.json",
        "secrets.yaml",
        "app-secrets.yml",
        ".aws/config",
        "service-account-prod.json",
        "main.tfvars",
        "terraform.tfstate.backup",
        ".ssh/config",
        "KEY.PEM",
    ],
)
def test_files_that_stay_here(path: str) -> None:
    assert file_reason(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        ".env.sample",
        "env.py",
        "src/credentials.py",
        "secrets.py",
        "id_rsa.pub",
        "keys.py",
        "a/key.ts",
        "tests/test_secrets.py",
        "monkey.py",
        "environment.yml",
        "docs/credentials.md",
        "package.json",
    ],
)
def test_files_that_may_go(path: str) -> None:
    assert file_reason(path) is None


# ---------------------------------------------------------------- prompts


def document(*units: tuple[str | None, int, str]) -> PromptDocument:
    """Units of (path, first line, text)."""
    made, at = [], 0
    for index, (path, line, text) in enumerate(units):
        end = at + len(text.encode())
        lines = LineSpan(line, line + max(0, text.rstrip("\n").count("\n"))) if path else None
        section = Section.CODE if path else Section.LOG
        made.append(PromptUnit(index, section, UnitKind.STATEMENT, ByteSpan(at, end), path, lines))
        at = end
    files = {path: PromptFile(path, ("#", ""), 99, "python") for path, _, _ in units if path}
    return PromptDocument("".join(text for _, _, text in units).encode(), tuple(made), files)


def reader(**files: str) -> Callable[[str], bytes]:
    return lambda path: files[path].encode()


def test_one_placeholder_for_each_value_wherever_it_occurs() -> None:
    key = SECRETS["github-token"]
    code = f'import os\n\nTOKEN = "{key}"\n'
    prompt = document(("a", 1, code), (None, 0, f"E   refused {key}\n"))
    made = find(prompt, reader(a=code))
    text = made.hide(prompt.text.decode())
    assert key not in text
    assert text.count(f"{MARK}1_github_token") == 2
    ast.parse(made.hide(code))
    assert [(row.path, row.line, row.kind) for row in made.rows] == [
        ("a", 3, "github-token"),
        ("log", None, "github-token"),
    ]
    assert key not in repr(made)
    assert made.restore(text) == prompt.text.decode()


def test_a_part_of_a_key_is_known_by_the_whole_file() -> None:
    whole = f'KEY = """\n{PEM}\n"""\n'
    middle = "".join(line + "\n" for line in PEM.split("\n")[2:4])
    made = find(document(("a", 4, middle)), reader(a=whole))
    hidden = made.hide(middle)
    assert all(line not in hidden for line in middle.split("\n") if line)
    assert [row.line for row in made.rows] == [4, 5]


def test_a_whole_key_becomes_one_line() -> None:
    code = f'KEY = """{PEM}"""\nx = 1\n'
    made = find(document(("a", 1, code)), reader(a=code))
    assert made.hide(code) == f'KEY = """{MARK}1_private_key"""\nx = 1\n'
    assert [(row.line, row.kind) for row in made.rows] == [(1, "private-key")]


def test_nothing_is_found_in_plain_code() -> None:
    assert find(document(("a", 1, "x = 1\n")), reader(a="x = 1\n")) == Redaction()


def test_numbers_that_the_text_uses_itself_are_left_out() -> None:
    code = f"# {MARK}1_jwt is how it looks\nK = '{SECRETS['jwt']}'\n"
    made = find(document(("a", 1, code)), reader(a=code))
    assert list(made.placeholders.values()) == [f"{MARK}2_jwt"]
    assert made.restore(made.hide(code)) == code


# ---------------------------------------------------------------- answers

KEY = SECRETS["openai-key"]
FILE = f'def call(url):\n    key = "{KEY}"\n    n = 1\n    return send(url, key, n)\n'
REDACTED = find(document(("a.py", 1, FILE)), lambda _: FILE.encode())
MARKED = REDACTED.hide(FILE)


def answer(search: str, replace: str) -> str:
    return f"a.py\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


def parse(text: str, form: str = "search-replace") -> object:
    return Guarded(edit_format(form), REDACTED).parse(text, None, lambda _: FILE.encode())


def test_an_edit_beside_a_secret_is_made() -> None:
    parse(answer("    n = 1\n", "    n = 2\n"))


def test_an_edit_that_copies_the_line_is_made_with_the_value() -> None:
    patch = parse(answer(MARKED, MARKED.replace("n = 1", "n = 2")))
    assert MARK.encode() not in b"".join(hunk.new for edit in patch.files for hunk in edit.hunks)  # type: ignore[attr-defined]


def test_a_diff_with_the_line_in_its_context_is_made() -> None:
    before, after = MARKED.splitlines(), MARKED.replace("n = 1", "n = 2").splitlines()
    body = [f" {before[0]}", f" {before[1]}", f"-{before[2]}", f"+{after[2]}", f" {before[3]}"]
    parse("```diff\n--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,4 @@\n" + "\n".join(body) + "\n```", "diff")


LINE = MARKED.splitlines(keepends=True)[1]


@pytest.mark.parametrize(
    ("search", "replace"),
    [
        (LINE, LINE.replace("key =", "token =")),
        (LINE, ""),
        (LINE, '    key = os.environ["KEY"]\n'),
        ("    n = 1\n", "    n = 1\n" + LINE.replace("key", "other")),
        ("    n = 1\n", f'    n = "{MARK}7_jwt"\n'),
        ("    n = 1\n", f'    print("{MARK}1")\n'),
    ],
    ids=["renamed", "deleted", "replaced", "copied", "invented", "cut short"],
)
def test_an_edit_of_the_line_is_refused(search: str, replace: str) -> None:
    with pytest.raises(EditRefused, match=r"a\.py that holds a secret") as caught:
        parse(answer(search, replace))
    assert KEY not in str(caught.value)


def test_a_placeholder_never_gets_into_a_new_file() -> None:
    def read(path: str) -> bytes:
        raise FileNotFoundError(path)

    text = f"new.py\n<<<<<<< SEARCH\n=======\nx = '{MARK}1_openai_key'\n>>>>>>> REPLACE\n"
    with pytest.raises(EditError):
        Guarded(edit_format("search-replace"), REDACTED).parse(text, None, read)


@pytest.mark.parametrize("cut", range(118, 250, 7))
def test_a_signature_line_shows_no_part_of_a_key(cut: int) -> None:
    """Its file is read although nothing else of it is shown: one line of a key does not look like one."""
    file = f'KEY = """{PEM}"""\n'
    signature = " ".join(file.split())[:cut] + "..."
    one = Definition("conf.py::KEY", "KEY", SymbolKind.CONSTANT, "conf.py", LineSpan(1, 7), None, signature=signature)
    text = f"{line_of(one)}\n".encode()
    unit = PromptUnit(0, Section.SIGNATURES, UnitKind.SIGNATURE, ByteSpan(0, len(text)), symbol="conf.py::KEY")
    redaction = find(PromptDocument(text, (unit,)), {"conf.py": file.encode()}.__getitem__)
    hidden = redaction.hide(text.decode())
    assert not any(line[n : n + 8] in hidden for line in BODY.split("\n") for n in range(len(line) - 7))
    assert {row.path for row in redaction.rows} <= {"conf.py"}
