"""Files and texts that hold credentials. They enter no index, whatever the ignore files say."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repo_index.marks import Marks


_HARMLESS_ENDINGS = (".example", ".sample", ".template", ".dist", ".tmpl", ".md", ".rst", ".pub")
_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass"),
    *(".htpasswd", ".git-credentials", ".my.cnf", ".s3cfg", ".boto", ".dockercfg", ".vault-token"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx"),
    *("*.jks", "*.keystore", "*.kdbx", "*.kdb", "*.ppk", "*.ovpn", "*.asc", "*.gpg", "*.tfstate"),
    *("*.tfstate.*", "*.tfvars", "credentials", "credentials.*", "secrets.*", "secret.*"),
    *("service-account*.json", "service_account*.json", "client_secret*.json", "*.agekey"),
    *("kubeconfig", "*.kubeconfig", "master.key", "*_history", "htpasswd", ".terraformrc"),
)
_SOURCE_ENDINGS = (".py", ".pyi", ".c", ".h", ".cc", ".cpp", ".rs", ".go", ".js", ".ts", ".java")
_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".gcloud"})

# What an access token starts with, how many characters may stand before that, and its form.
_TOKENS = {
    mark: (before, re.compile(form))
    for mark, before, form in (
        *((mark, 0, r"\b[A-Z]{4}[A-Z0-9]{16}\b") for mark in ("AKIA", "ASIA", "ABIA", "ACCA")),
        *((f"gh{kind}_", 0, r"\bgh[pousr]_[A-Za-z0-9]{36,}") for kind in "pousr"),
        ("github_pat_", 0, r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
        ("glpat-", 0, r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("xox", 0, r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("xapp-", 0, r"\bxapp-\d-[A-Za-z0-9-]{20,}"),
        ("hooks.slack.com/services/T", 0, r"[a-z./]+/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,}"),
        ("AIza", 0, r"\bAIza[A-Za-z0-9_-]{35}"),
        ("ya29.", 0, r"\bya29\.[A-Za-z0-9_-]{30,}"),
        ("GOCSPX-", 0, r"\bGOCSPX-[A-Za-z0-9_-]{20,}"),
        ("k_live_", 1, r"\b[sr]k_live_[A-Za-z0-9]{16,}"),
        ("k_test_", 1, r"\b[sr]k_test_[A-Za-z0-9]{16,}"),
        ("whsec_", 0, r"\bwhsec_[A-Za-z0-9]{24,}"),
        ("sk-", 0, r"\bsk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{32,}"),
        ("hf_", 0, r"\bhf_[A-Za-z0-9]{30,}"),
        ("npm_", 0, r"\bnpm_[A-Za-z0-9]{36}"),
        ("pypi-AgEI", 0, r"\bpypi-AgEI[A-Za-z0-9_-]{20,}"),
        ("dop_v1_", 0, r"\bdop_v1_[a-f0-9]{64}"),
        ("SG.", 0, r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{32,}"),
        ("SK", 0, r"\bSK[a-f0-9]{32}\b"),
        ("key-", 0, r"\bkey-[a-f0-9]{32}\b"),
        ("dckr_pat_", 0, r"\bdckr_pat_[A-Za-z0-9_-]{20,}"),
        ("hvs.", 0, r"\bhvs\.[A-Za-z0-9_-]{24,}"),
        ("hvb.", 0, r"\bhvb\.[A-Za-z0-9_-]{24,}"),
        ("AGE-SECRET-KEY-1", 0, r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
        *((f"shp{kind}_", 0, r"\bshp[a-z]{2}_[a-f0-9]{32}") for kind in ("at", "ss", "ca")),
        (":AA", 10, r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b"),
        ("eyJ", 0, r"\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}"),
        ("AccountKey=", 0, r"AccountKey=[A-Za-z0-9+/]{60,}={0,2}"),
    )
}
_KEY_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_URL = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"'<>{}$%]{1,64}:([^\s@/\"'<>{}$%]{6,})@[\w.-]+"
)
_WORDS = (
    *("password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key"),
    *("access_key", "accesskey", "private_key", "privatekey", "auth_key", "authkey", "credential"),
    *("encryption_key", "signing_key"),
)
_VALUE = re.compile(
    r"""[\w.-]{0,40}["']?\s*(?::\s*[\w\[\]., |]{1,30}\s*=|=>|:=|=|:|,(?=\s*["']))\s*
    (?:[rbuf]{0,2}["'`](?P<quoted>[^"'`\s]{12,512})["'`]|(?P<bare>[A-Za-z0-9+/_=.~-]{16,512})\s*$)""",
    re.VERBOSE,
)


@lru_cache(maxsize=1)
def _marks() -> Marks:
    """Made when a text is first looked at: who asks for names alone loads no compiled code."""
    from repo_index.marks import Marks

    return Marks(("PRIVATE KEY", *_TOKENS, "://", *_WORDS))


_LONGEST_SCHEME = 21
_LONGEST_ADDRESS = 600
_PLACEHOLDER = re.compile(
    r"example|sample|dummy|fake|placeholder|changeme|change[-_]me|your|test|xxx|\*\*\*|\.\.\.|1234567"
    r"|abcdef|<|>|\$\{|%\(|\{\{|password|secret|token|https?:|localhost|redacted",
    re.IGNORECASE,
)


def secret_name(path: str) -> str:
    """Why the name of a file says that it holds credentials; empty when it does not.

    ``path`` has ``/`` between its parts. Case is ignored, as some file systems do.
    """
    *folders, name = path.casefold().split("/")
    for folder in folders:
        if folder in _FOLDERS:
            return f"secret: in a folder named {folder}"
    if name.endswith(_HARMLESS_ENDINGS):
        return ""
    for pattern in _NAMES:
        if fnmatchcase(name, pattern):
            # secrets.py is a module of this name in many projects; its content is looked at.
            if name.endswith(_SOURCE_ENDINGS):
                continue
            return f"secret: the name matches {pattern}"
    return ""


def secret_content(text: str) -> str:
    """What in a text looks like a credential, with its line; empty when nothing does."""
    place = _secret_place(text)
    if place is None:
        return ""
    offset, what = place
    return f"secret: {what} on line {text.count(chr(10), 0, offset) + 1}"


def _secret_place(text: str) -> tuple[int, str] | None:
    folded = ""
    for mark in _marks().found_in(text):
        if mark == "PRIVATE KEY":
            place = _key_place(text)
        elif mark == "://":
            place = _address_place(text)
        elif mark in _TOKENS:
            place = _token_place(text, mark)
        else:
            folded = folded or _folded(text)
            place = _value_place(text, folded, mark)
        if place is not None:
            return place
    return None


def _key_place(text: str) -> tuple[int, str] | None:
    for start in _places(text, "PRIVATE KEY"):
        header = _KEY_BLOCK.search(text, max(0, start - 40), start + 40)
        if header and _is_key_block(text, header.end()):
            return start, "a private key"
    return None


def _token_place(text: str, mark: str) -> tuple[int, str] | None:
    before, form = _TOKENS[mark]
    for start in _places(text, mark):
        for place in range(max(0, start - before), start + 1):
            found = form.match(text, place)
            if found and _is_random(found[0]):
                return start, "an access token"
    return None


def _address_place(text: str) -> tuple[int, str] | None:
    for start in _places(text, "://"):
        end = start + _LONGEST_ADDRESS
        found = "@" in text[start:end] and _URL.search(text, max(0, start - _LONGEST_SCHEME), end)
        if (
            found
            and not _PLACEHOLDER.search(found[1])
            and len(set(found[1])) > 4
            and _mixed(found[1])
        ):
            return found.start(), "a password in an address"
    return None


def _folded(text: str) -> str:
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(c.lower() if c.isascii() else c for c in text)


def _value_place(text: str, folded: str, word: str) -> tuple[int, str] | None:
    for start in _places(folded, word):
        end = text.find("\n", start)
        end = min(len(text) if end < 0 else end, start + 600)
        given = _VALUE.match(text, start + len(word), end)
        if given and _is_credential(given["quoted"] or given["bare"], bare=given["quoted"] is None):
            return start, f"a value given to {word}"
    return None


def _places(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def _is_key_block(text: str, end: int) -> bool:
    """Whether key material follows the header of a private key: a mention of one has none."""
    follows = text[end : end + 400].replace("\\n", "\n")
    return re.search(r"[A-Za-z0-9+/=]{40,}", follows) is not None


def _is_random(value: str) -> bool:
    if re.search(r"EXAMPLE|x{6}|X{6}|\.\.\.|0{8}|1234567|abcdef", value):
        return False
    return len(set(value)) >= 10


def _mixed(value: str) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    return sum(any(kind(c) for c in value) for kind in kinds) >= 2


def _is_credential(value: str, *, bare: bool) -> bool:
    """Whether a value given to a name like ``password`` is random enough to be one."""
    if _PLACEHOLDER.search(value) or not any(c.isdigit() for c in value):
        return False
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(?:[./][A-Za-z0-9_]+)*", value) and not _mixed(value):
        return False
    if bare and re.search(r"[._]", value) and not re.search(r"[+/=]", value):
        return False
    return entropy(value) >= (3.6 if bare else 3.0 if len(value) < 20 else 3.3)


def entropy(value: str) -> float:
    """Shannon entropy of the characters of ``value``, in bits for each."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
