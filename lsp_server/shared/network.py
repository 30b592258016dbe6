"""Proxies and certificates of the environment: which there are, and what to do where they fail.

Standard library only.
"""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

ELSEWHERE = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
"""How other programs call what ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name."""


def use_certificates() -> None:
    """Have this process and its children trust the certificates that the environment names for
    other programs. Without any, those of the system count."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return
    named = next(filter(None, map(os.environ.get, ELSEWHERE)), "")
    if named:
        os.environ["SSL_CERT_DIR" if os.path.isdir(named) else "SSL_CERT_FILE"] = named


def network_settings() -> tuple[str, str]:
    """Return the proxies and certificates in use, and their problems; empty without either."""
    proxies = [
        f"{kind} by {without_password(url)}"
        for kind, url in sorted(getproxies().items())
        if kind != "no"
    ]
    certificates = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR") or ""
    summary = f"{', '.join(proxies) or 'no proxy'}; certificates of {certificates or 'the system'}"
    missing = certificates and not os.access(certificates, os.R_OK)
    return summary, f"{certificates} cannot be read; correct SSL_CERT_FILE" if missing else ""


def network_remedy(error: BaseException, url: str) -> str:
    """Return advice about a request to ``url`` that failed with ``error``; empty without any."""
    message, certificates = str(error), os.environ.get("SSL_CERT_FILE", "")
    if certificates and (not os.access(certificates, os.R_OK) or "X509" in message):
        return f"SSL_CERT_FILE names {certificates}, which holds no certificates; correct it"
    if "CERTIFICATE_VERIFY_FAILED" in message:
        if certificates:
            return f"add the certificate of its authority to {certificates} (SSL_CERT_FILE)"
        return "set SSL_CERT_FILE to the file with your company's certificates"
    proxy = _proxy_of(url)
    if not proxy:
        return ""
    if "407" in message:
        return f"the proxy {proxy} asks for a name and a password: {_variable(url)}=http://NAME:PASSWORD@HOST:PORT"
    if proxy.startswith("socks"):
        return f"{proxy} is not spoken to; name an HTTP proxy in {_variable(url)}"
    host = urlsplit(url).hostname
    return f"check the proxy {proxy} ({_variable(url)}), or put {host} into NO_PROXY"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its type if it has none."""
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def without_password(url: str) -> str:
    """Return an address as a message may show it."""
    return re.sub(r"//[^/?#]*@", "//", url, count=1)


def _proxy_of(url: str) -> str:
    """Return the proxy through which an address is reached, as it may be shown; empty for none."""
    address, proxies = urlsplit(url), getproxies()
    named = proxies.get(address.scheme) or proxies.get("all", "")
    if not named or proxy_bypass(address.netloc):
        return ""
    return without_password(named if "://" in named else f"http://{named}")


def _variable(url: str) -> str:
    name = f"{urlsplit(url).scheme}_proxy".upper()
    names = (name.lower(), name, "all_proxy", "ALL_PROXY")
    return next((spelling for spelling in names if os.environ.get(spelling)), name)
