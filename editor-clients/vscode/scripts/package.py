"""Packs the built extension as a .vsix: package.py OUT.vsix. The same files give the same bytes."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

FOLDER = Path(__file__).resolve().parent.parent
ROOT = FOLDER.parent.parent
sys.path.insert(0, str(ROOT))

from release.bill_of_materials import bundled  # noqa: E402
from release.distributions import without_local_links  # noqa: E402

LARGEST_BYTES = 300_000
SERVER = FOLDER / "dist/server"
PACKED = ["dist/extension.js", "media/icon.png", "media/*.svg", "media/*.md"]
TYPES = {".js": "application/javascript", ".json": "application/json", ".md": "text/markdown",
         ".png": "image/png", ".svg": "image/svg+xml", ".txt": "text/plain", ".py": "text/x-python",
         ".vsixmanifest": "text/xml", ".whl": "application/zip"}  # fmt: skip


def package_json() -> dict[str, object]:
    """The manifest without what only building needs."""
    manifest: dict[str, object] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    for name in ("devDependencies", "scripts", "private"):
        manifest.pop(name)
    return manifest


def readme() -> str:
    """The page without its pictures, which are larger than all else, and without links to files
    that stay in the repository."""
    return without_local_links((FOLDER / "README.md").read_text(encoding="utf-8"))


def notices() -> str:
    """The licences of the packages that are bundled, which ask to come along."""
    lock = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))
    found = "Redraft for VS Code holds these packages, under these licences.\n"
    for name, path in bundled(lock):
        (licence,) = (FOLDER / path).glob("[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]*")
        text = licence.read_text(encoding="utf-8").strip()
        found += f"\n{'=' * 72}\n{name} {lock['packages'][path]['version']}\n\n{text}\n"
    return found


def vsix_manifest(package: dict[str, object]) -> str:
    """extension.vsixmanifest, which the marketplace and the installer read."""
    text = {
        name: str(package[name])
        for name in ("name", "version", "publisher", "displayName", "description")
    }
    engine = str(package["engines"]["vscode"])  # type: ignore[index]
    assets = {
        "Microsoft.VisualStudio.Code.Manifest": "extension/package.json",
        "Microsoft.VisualStudio.Services.Content.Details": "extension/README.md",
        "Microsoft.VisualStudio.Services.Content.License": "extension/LICENSE.txt",
        "Microsoft.VisualStudio.Services.Icons.Default": "extension/media/icon.png",
    }
    lines = [
        f'<Asset Type="{kind}" Path="{path}" Addressable="true"/>' for kind, path in assets.items()
    ]
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
 <Metadata>
  <Identity Language="en-US" Id={quoteattr(text["name"])} Version={quoteattr(text["version"])} \
Publisher={quoteattr(text["publisher"])}/>
  <DisplayName>{escape(text["displayName"])}</DisplayName>
  <Description xml:space="preserve">{escape(text["description"])}</Description>
  <Tags>{escape(",".join(package["keywords"]))}</Tags>
  <Categories>{escape(",".join(package["categories"]))}</Categories>
  <License>extension/LICENSE.txt</License>
  <Icon>extension/media/icon.png</Icon>
  <Properties>
   <Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(engine)}/>
   <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
  </Properties>
 </Metadata>
 <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
 <Dependencies/>
 <Assets>{"".join(lines)}</Assets>
</PackageManifest>
"""  # type: ignore[arg-type]


def content_types() -> str:
    """The zip's table of types by file ending."""
    rows = "".join(
        f'<Default Extension="{end}" ContentType="{kind}"/>' for end, kind in TYPES.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{rows}</Types>\n'


def main() -> int:
    """Write the package; an error when it grew too large, the server that it carries apart."""
    out = Path(sys.argv[1])
    package = package_json()
    entries = {
        "extension.vsixmanifest": vsix_manifest(package).encode(),
        "[Content_Types].xml": content_types().encode(),
        "extension/package.json": json.dumps(package, ensure_ascii=False).encode(),
        "extension/README.md": readme().encode(),
        "extension/LICENSE.txt": (ROOT / "LICENSE").read_bytes(),
        "extension/ThirdPartyNotices.txt": notices().encode(),
    }
    for pattern in PACKED:
        for file in sorted(FOLDER.glob(pattern)):
            entries[f"extension/{file.relative_to(FOLDER).as_posix()}"] = file.read_bytes()
    for file in sorted(one for one in SERVER.iterdir() if not one.name.startswith(".")):
        entries[f"extension/server/{file.name}"] = file.read_bytes()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
        size = sum(
            one.compress_size
            for one in archive.infolist()
            if not one.filename.startswith("extension/server/")
        )
    whole = out.stat().st_size
    print(f"{out.name}: {whole:,} bytes, {size:,} without the server, {len(entries)} files")
    if size > LARGEST_BYTES:
        print(f"package.py: larger than {LARGEST_BYTES:,} bytes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
