#!/usr/bin/env python3
"""Lists what an image is made of, as CycloneDX 1.6 in JSON (an SBOM).

The components are the Debian packages of a root file system, the Python packages in its /opt, and
Systole itself. The list depends only on these components, so it is the same each time it is made
for an image.
"""

import argparse
import email.parser
import hashlib
import json
import pathlib
import re
import urllib.parse
import uuid

# Names of licenses in Debian's copyright files, and SPDX's names for them. Other licenses keep
# their Debian name.
_SPDX = {
    **{name: name for name in ("Apache-2.0", "BSL-1.0", "curl", "ISC", "MIT", "MPL-2.0", "Zlib")},
    **{name: name for name in ("BSD-2-Clause", "BSD-3-Clause", "BSD-4-Clause")},
    **{"Expat": "MIT", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause"},
    **{"GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later", "GPL-3+": "GPL-3.0-or-later"},
    **{"LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only"},
    **{"LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3+": "LGPL-3.0-or-later", "zlib": "Zlib"},
}


def _license(name):
    if name in _SPDX:
        return {"license": {"id": _SPDX[name]}}
    return {"license": {"name": name}}


def _debian_licenses(copyright_file):
    """The licenses that a machine-readable copyright file names. Empty if the file is missing or in
    another form."""
    if not copyright_file.exists():
        return []
    text = copyright_file.read_text(errors="replace")
    if "copyright-format/1.0" not in text.partition("\n\n")[0]:
        return []
    names = re.findall(r"^License: *(\S.*?) *$", text, re.MULTILINE)
    return [_license(name) for name in sorted(set(names))]


def _debian_packages(root):
    """The fields of each installed package, in the order of names."""
    files = [root / "var/lib/dpkg/status", *(root / "var/lib/dpkg/status.d").glob("*")]
    stanzas = []
    for file in files:
        if file.exists():
            stanzas += file.read_text(errors="replace").strip().split("\n\n")
    packages = [email.parser.HeaderParser().parsestr(stanza) for stanza in stanzas if stanza]
    installed = [p for p in packages if p["Status"].endswith(" installed")]
    return sorted(installed, key=lambda package: package["Package"])


def _purl(kind, name, version, **qualifiers):
    purl = f"pkg:{kind}/{name}@{urllib.parse.quote(version, safe='')}"
    return purl + ("?" + urllib.parse.urlencode(qualifiers) if qualifiers else "")


def _debian_component(package, root, distro):
    name, version = package["Package"], package["Version"]
    purl = _purl(
        *("deb/debian", urllib.parse.quote(name, safe=""), version),
        arch=package["Architecture"],
        distro=distro,
    )
    # If the package names no source, the source has the package's name and version.
    source = re.fullmatch(r"(\S+)(?: \((.*)\))?", package["Source"] or name)
    component = {
        "type": "library",
        "bom-ref": purl,
        "supplier": {"name": "Debian"},
        "name": name,
        "version": version,
        "purl": purl,
        "properties": [
            {"name": "debian:source", "value": source[1]},
            {"name": "debian:source-version", "value": source[2] or version},
        ],
    }
    licenses = _debian_licenses(root / "usr/share/doc" / name / "copyright")
    return component | ({"licenses": licenses} if licenses else {})


def _python_components(root):
    for file in sorted((root / "opt").glob("**/*.dist-info/METADATA")):
        about = email.parser.HeaderParser().parsestr(file.read_text(errors="replace"))
        name, version = about["Name"], about["Version"]
        purl = _purl("pypi", re.sub(r"[-_.]+", "-", name).lower(), version)
        component = {"type": "library", "bom-ref": purl, "name": name, "version": version}
        if name != "systole":  # PyPI's package of this name is another project's.
            component["purl"] = purl
        if about["License-Expression"]:
            component["licenses"] = [{"expression": about["License-Expression"]}]
        yield component


def _own_component(version):
    return {
        "type": "application",
        "bom-ref": f"systole-programs@{version}",
        "name": "systole",
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }


def _sbom(root, name, version):
    os_release = (root / "usr/lib/os-release").read_text()
    system = dict(re.findall(r'^(\w+)="?([\w.]+)"?$', os_release, re.MULTILINE))
    distro = f"{system['ID']}-{system['VERSION_ID']}"
    components = [_own_component(version)]
    components += [_debian_component(p, root, distro) for p in _debian_packages(root)]
    components += _python_components(root)
    image = {"type": "container", "bom-ref": "image", "name": name, "version": version}
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": image},
        "components": components,
        "dependencies": [{"ref": "image", "dependsOn": [c["bom-ref"] for c in components]}],
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return body | {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True, help="the root file system")
    parser.add_argument("--name", required=True, help="the image's name")
    parser.add_argument("--version", required=True, help="Systole's version")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    text = json.dumps(_sbom(options.root, options.name, options.version), indent=1)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
