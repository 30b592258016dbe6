"""Shapes of access tokens, as their issuers document them."""

from __future__ import annotations

import re

_WORD = r"[A-Za-z0-9]"
_DASHED = r"[A-Za-z0-9_-]"
_HEX = r"[a-f0-9]"
_SHAPES = (
    # Amazon, Google, Microsoft
    *((mark, 0, r"\b[A-Z]{4}[A-Z0-9]{16}\b") for mark in ("AKIA", "ASIA", "ABIA", "ACCA")),
    ("AIza", 0, rf"\bAIza{_DASHED}{{35}}"),
    ("ya29.", 0, rf"\bya29\.{_DASHED}{{30,}}"),
    ("GOCSPX-", 0, rf"\bGOCSPX-{_DASHED}{{20,}}"),
    ("1//0", 0, rf"\b1//0{_DASHED}{{40,}}"),
    ("AccountKey=", 0, r"AccountKey=[A-Za-z0-9+/]{60,}={0,2}"),
    ("SharedAccessKey=", 0, r"SharedAccessKey=[A-Za-z0-9+/]{40,}={0,2}"),
    ("sig=", 0, r"\bsig=[A-Za-z0-9%+/]{43,}(?:%3[dD]|=)"),
    ("8Q~", 4, r"[A-Za-z0-9_~.-]{3,4}8Q~[A-Za-z0-9_~.-]{30,}"),
    # Where code lies and packages come from
    *((f"gh{kind}_", 0, rf"\bgh[pousr]_{_WORD}{{36,}}") for kind in "pousr"),
    ("github_pat_", 0, r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    *(
        (f"gl{kind}-", 0, rf"\bgl[a-z]{{2,5}}-{_DASHED}{{20,}}")
        for kind in ("pat", "dt", "rt", "cbt", "ptt", "ft", "soat", "agent", "imt")
    ),
    ("ATATT3", 0, r"\bATATT3[A-Za-z0-9_=-]{40,}"),
    ("ATBB", 0, rf"\bATBB{_WORD}{{28,}}"),
    ("npm_", 0, rf"\bnpm_{_WORD}{{36}}"),
    ("pypi-AgEI", 0, rf"\bpypi-AgEI{_DASHED}{{20,}}"),
    ("rubygems_", 0, rf"\brubygems_{_HEX}{{48}}"),
    ("dckr_pat_", 0, rf"\bdckr_pat_{_DASHED}{{20,}}"),
    ("oy2", 0, r"\boy2[a-z0-9]{43}\b"),
    ("cio", 0, rf"\bcio{_WORD}{{32}}\b"),
    # Messages
    ("xox", 0, r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("xapp-", 0, r"\bxapp-\d-[A-Za-z0-9-]{20,}"),
    ("hooks.slack.com/services/T", 0, r"[a-z./]+/T[A-Za-z0-9]+/B[A-Za-z0-9]+/[A-Za-z0-9]{16,}"),
    (".com/api/webhooks/", 0, rf"\.com/api/webhooks/\d{{16,20}}/{_DASHED}{{50,}}"),
    (":AA", 10, rf"\b\d{{8,10}}:AA{_DASHED}{{33}}\b"),
    ("SG.", 0, rf"\bSG\.{_DASHED}{{16,}}\.{_DASHED}{{32,}}"),
    ("SK", 0, rf"\bSK{_HEX}{{32}}\b"),
    ("key-", 0, rf"\bkey-{_HEX}{{32}}\b"),
    ("-us", 32, rf"\b{_HEX}{{32}}-us\d{{1,2}}\b"),
    # Payments and shops
    ("k_live_", 1, rf"\b[sr]k_live_{_WORD}{{16,}}"),
    ("k_test_", 1, rf"\b[sr]k_test_{_WORD}{{16,}}"),
    ("whsec_", 0, r"\bwhsec_[A-Za-z0-9+/]{24,}"),
    ("sq0", 0, rf"\bsq0[a-z]{{3}}-{_DASHED}{{22,}}"),
    *((f"shp{kind}_", 0, rf"\bshp[a-z]{{2}}_{_HEX}{{32}}") for kind in ("at", "ss", "ca", "pa")),
    # Models
    ("sk-", 0, rf"\bsk-(?:ant-|proj-|or-|svcacct-)?{_DASHED}{{32,}}"),
    ("hf_", 0, rf"\bhf_{_WORD}{{30,}}"),
    ("gsk_", 0, rf"\bgsk_{_WORD}{{40,}}"),
    ("r8_", 0, rf"\br8_{_WORD}{{37,}}"),
    ("xai-", 0, rf"\bxai-{_WORD}{{60,}}"),
    ("pplx-", 0, rf"\bpplx-{_WORD}{{40,}}"),
    # Services
    ("dop_v1_", 0, rf"\bdop_v1_{_HEX}{{64}}"),
    ("hvs.", 0, rf"\bhvs\.{_DASHED}{{24,}}"),
    ("hvb.", 0, rf"\bhvb\.{_DASHED}{{24,}}"),
    (".atlasv1.", 14, rf"\b{_WORD}{{14}}\.atlasv1\.{_DASHED}{{60,}}"),
    ("dapi", 0, rf"\bdapi{_HEX}{{32}}"),
    ("lin_api_", 0, rf"\blin_api_{_WORD}{{32,}}"),
    ("ntn_", 0, rf"\bntn_{_WORD}{{40,}}"),
    ("secret_", 0, rf"\bsecret_{_WORD}{{43}}\b"),
    ("figd_", 0, rf"\bfigd_{_DASHED}{{40,}}"),
    ("glsa_", 0, rf"\bglsa_{_WORD}{{32}}_{_HEX}{{8}}"),
    ("glc_", 0, r"\bglc_[A-Za-z0-9+/=]{50,}"),
    ("pscale_", 0, r"\bpscale_[a-z]+_[A-Za-z0-9_.-]{32,}"),
    ("dp.", 0, r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}"),
    ("PMAK-", 0, rf"\bPMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    ("NRAK-", 0, r"\bNRAK-[A-Z0-9]{27}"),
    ("sntry", 0, r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    ("sbp_", 0, rf"\bsbp_{_HEX}{{40}}"),
    ("PRIVATE-TOKEN", 0, rf"PRIVATE-TOKEN['\"]?\s*[:=]\s*['\"]?{_DASHED}{{20,}}"),
    ("tskey-", 0, rf"\btskey-[a-z]+-{_WORD}{{8,}}-{_WORD}{{20,}}"),
    ("AGE-SECRET-KEY-1", 0, r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("eyJ", 0, rf"\beyJ{_DASHED}{{15,}}\.eyJ{_DASHED}{{15,}}\.{_DASHED}{{20,}}"),
)
TOKENS = {mark: (before, re.compile(pattern)) for mark, before, pattern in _SHAPES}
"""What a token is known by, how many characters may be before that, and its whole form."""

KEY_BLOCKS = {
    "PRIVATE KEY": re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    "PuTTY-User-Key-File": re.compile(r"(PuTTY)-User-Key-File-\d"),
    "LS0tLS1CRUdJTi": re.compile(
        r"(LS)0tLS1CRUdJTi[A-Za-z0-9+/]{0,40}(?:UFJJVkFURSBLRVkt|BSSVZBVEUgS0VZL|QUklWQVRFIEtFWS)"
    ),
}
"""How private keys begin or end, as they are and in base 64; the key lies on the inner side."""

PASSWORDS = {
    "machine": (0, re.compile(r"machine\s+\S+\s+login\s+\S+\s+password\s+(\S{6,})", re.I)),
    "bearer ": (0, re.compile(r"bearer\s+([A-Za-z0-9+/_=.~-]{20,})", re.I)),
    "basic ": (0, re.compile(r"basic\s+([A-Za-z0-9+/]{16,}={0,2})", re.I)),
    "_auth": (0, re.compile(r"_auth\s*=\s*\"?([A-Za-z0-9+/]{12,}={0,2})", re.I)),
    '"auth"': (0, re.compile(r"\"auth\"\s*:\s*\"([A-Za-z0-9+/]{12,}={0,2})\"", re.I)),
    "-key-data": (0, re.compile(r"-key-data\"?:\s*\"?([A-Za-z0-9+/]{100,}={0,2})", re.I)),
    **{
        mark: (
            200,
            re.compile(
                r"\b(?:user(?: id|name)?|uid|server|host|data source)\s*=[^\n]{1,160};\s*"
                r"(?:password|pwd)\s*=\s*([^;\"'\s{}$<>%]{6,})(?=[;\"'\s]|$)",
                re.I,
            ),
        )
        for mark in ("password=", "pwd=")
    },
}
"""Small letters that a login is known by, how many characters may be before them, and its form;
the group is what must stay secret."""
