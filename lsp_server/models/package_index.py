"""Gets a package from a package index without pip, which environments made by uv do not have.

Source: the simple repository API (PEP 503, PEP 691). The index is that of pip's or uv's
configuration: ``UV_DEFAULT_INDEX``, ``UV_INDEX_URL``, ``PIP_INDEX_URL``, pip's files, else PyPI.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from platformdirs import site_config_path, user_config_path

from lsp_server.models.file_digest import sha256_of
from lsp_server.models.http_download import download, prepare_hub, try_again
from lsp_server.models.manifest import PackageSource
from lsp_server.models.progress import Report
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.network import first_line, network_remedy, use_certificates, without_password
from operating_system.system import is_windows

PYPI = "https://pypi.org/simple"
UNFINISHED = "package.incomplete"
_JSON = "application/vnd.pypi.simple.v1+json"
_FIRST = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_FURTHER = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")
_SECTIONS = ("global", "install", "download")
_TIMEOUT_S = 30.0
_NO_SUCH_RANGE = 416


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A file of a package. sha256: empty where the index does not say it."""

    name: str
    url: str
    sha256: str = ""


def download_from_index(source: PackageSource, folder: Path, report: Report) -> Path:
    """Return the package, in ``folder``, where an unfinished one stays for the next try; its hash
    is checked. Raises RedraftError."""
    addresses = indexes()
    if not addresses:
        raise RedraftError("pip is configured to use no index; give the file with --from")
    problems = []
    for address in addresses:
        try:
            index_file = _file_at(address, source)
        except RedraftError as error:
            problems.append(str(error))
            continue
        return _downloaded(index_file, source, folder, report)
    raise RedraftError(problems[0])


def indexes() -> list[str]:
    """Return addresses of package indexes, the first one first; none where pip is to use none."""
    configured = _configured()
    if os.environ.get("PIP_NO_INDEX", configured.get("no-index", "")).lower() in _YES:
        return []
    first = next(filter(None, map(os.environ.get, _FIRST)), configured.get("index-url") or PYPI)
    further = [os.environ.get(name, "") for name in _FURTHER]
    words = " ".join([first, *further, configured.get("extra-index-url", "")]).split()
    # uv may name an index in front of its address.
    addresses = [re.sub(r"^[\w.-]+=(?=https?:)", "", word) for word in words]
    return list(dict.fromkeys(address for address in addresses if address.startswith("http")))


_YES = ("1", "y", "yes", "t", "true", "on")


def _configured() -> dict[str, str]:
    """Return the settings of pip's files; later, more specific files win."""
    values: dict[str, str] = {}
    for file in _pip_files():
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, "utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in _SECTIONS:
            if parser.has_section(section):
                values |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    return values


def _pip_files() -> Iterator[Path]:
    """Source: "Configuration" in pip's manual."""
    named = os.environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return
    name = "pip.ini" if is_windows() else "pip.conf"
    yield site_config_path("pip", appauthor=False) / name
    if not is_windows():
        yield Path("/etc") / name
    yield Path.home() / ("pip" if is_windows() else ".pip") / name
    yield user_config_path("pip", appauthor=False, roaming=True) / name
    yield Path(sys.prefix) / name
    if named:
        yield Path(named)


def _file_at(address: str, source: PackageSource) -> IndexFile:
    """Return the file that is asked for, as an index lists it. Raises RedraftError."""
    name = re.split(r"[=<>!~\[ ]", source.requirement)[0]
    page = f"{address.rstrip('/')}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    page_name = without_password(page)
    try:
        answer = _session().get(
            page,
            headers={"Accept": f"{_JSON}, text/html;q=0.2"},
            timeout=_TIMEOUT_S,
            follow_redirects=True,
        )
    except Exception as error:  # its HTTP library has another name from version to version
        remedy = network_remedy(error, page)
        why = "; ".join(filter(None, [first_line(error), remedy]))
        raise RedraftError(f"{page_name} cannot be reached ({why})") from error
    if answer.status_code != 200:
        raise RedraftError(f"{page_name} answers {answer.status_code}")
    try:
        listed = _listed(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise RedraftError(f"{page_name} is no page of a package index") from error
    version = source.requirement.partition("==")[2]
    for file in listed:
        wheel = re.fullmatch(rf"[\w.]+-{re.escape(version)}(-\d\w*)?(-[\w.]+){{3}}\.whl", file.name)
        if file.sha256 == source.sha256 or (wheel and not file.sha256):
            return file
    raise RedraftError(
        f"{page_name} does not have {source.requirement} with the hash that was checked"
    )


def _listed(answer: Any) -> list[IndexFile]:
    base = str(answer.url)
    if "json" in answer.headers.get("Content-Type", ""):
        return [
            IndexFile(
                str(file["filename"]),
                urljoin(base, file["url"]),
                str(file.get("hashes", {}).get("sha256", "")),
            )
            for file in answer.json()["files"]
        ]
    anchors = _Anchors()
    anchors.feed(answer.text)
    files = []
    for link in anchors.links:
        url, _, fragment = urljoin(base, link).partition("#")
        digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        files.append(IndexFile(Path(urlsplit(url).path).name, url, digest))
    return files


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]


def _downloaded(index_file: IndexFile, source: PackageSource, folder: Path, report: Report) -> Path:
    file, address = folder / UNFINISHED, without_password(index_file.url)
    if not (file.is_file() and sha256_of(file) == source.sha256):
        _session()
        try:
            download(index_file.url, file, report)
        except RedraftError:
            raise
        except Exception as error:  # its HTTP library has another name from version to version
            if getattr(getattr(error, "response", None), "status_code", 0) == _NO_SUCH_RANGE:
                file.unlink()  # what is here is longer than the package
            raise RedraftError(
                f"the download of {address} broke off ({first_line(error)}); {try_again(file)}"
            ) from error
    if sha256_of(file) != source.sha256:
        file.unlink()
        raise RedraftError(f"{address} has another hash than was checked; it was deleted")
    return file


def _session() -> Any:
    """Return ``huggingface_hub``'s HTTP client, which minds proxies; certificates as pip's."""
    prepare_hub()
    if certificates := _configured().get("cert", ""):
        os.environ.setdefault("PIP_CERT", certificates)
    use_certificates()
    from huggingface_hub import get_session

    return get_session()
