#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""media_types.py DB_JSON: writes src/website/media_types.txt from the `db.json` of npm's package mime-db.

    npm pack mime-db@1.54.0 && tar xzf mime-db-1.54.0.tgz && filter/core/media_types.py package/db.json

The database merges the registries of IANA, Apache and nginx. It has 1,200 extensions; the table has the extensions of
files that people put into buckets.
"""

import json
import pathlib
import sys

EXTENSIONS = """
3g2 3gp 3mf 7z aac ai aif aiff apk appcache appx asc atom avi avif bmp br bz2 cab cbr cbz cer cjs class conf crl crt
css csv dae dcm deb der djvu doc docm docx dot dotx dtd dwg dxf ear emf eot eps epub f4v flac flv geojson gif glb gltf
gml gpx gz heic heif htm html ico ics jar jnlp jp2 jpe jpeg jpf jpg jpm jpx js json json5 jsonld jxl jxr kar kml kmz
ktx ktx2 less log lua m3u m3u8 m4a m4p m4s m4v map markdown mathml md mdx metalink mid midi mjs mkv mobi mov mp3 mp4
mpd mpeg mpg msg mtl mts mxf ndjson nt numbers obj odg odp ods odt oga ogg ogv opus otf p12 pages pcap pcx pdf pgp
pkpass pl png pot potx pps ppsx ppt pptm pptx ps psd qt rar rdf rng rpm rss rtf sass scss sgml sh sldx srt stl svg swf
tar tcl tga tif tiff toml torrent ts tsv ttc ttf ttl txt usdz vcard vcf vob vsd vtt war wasm wav weba webm webmanifest
webp wma wmf wmv woff woff2 wsdl xht xhtml xls xlsb xlsm xlsx xml xpi xps xsd xsl xslt xspf xz yaml yml zip zst
"""

# Types that browsers expect, where the database has another one or none.
CHOSEN = {
    "aac": "audio/aac",
    "asc": "application/pgp-signature",
    "br": "application/x-brotli",
    "cbz": "application/vnd.comicbook+zip",
    "cbr": "application/vnd.comicbook-rar",
    "deb": "application/vnd.debian.binary-package",
    "flac": "audio/flac",
    "glb": "model/gltf-binary",
    "gpx": "application/gpx+xml",
    "gz": "application/gzip",
    "ico": "image/vnd.microsoft.icon",
    "js": "text/javascript",
    "m4a": "audio/mp4",
    "m4s": "video/iso.segment",
    "map": "application/json",
    "ndjson": "application/x-ndjson",
    "opus": "audio/ogg",
    "ts": "video/mp2t",
    "vcf": "text/vcard",
    "wav": "audio/wav",
    "xml": "application/xml",
    "xz": "application/x-xz",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zst": "application/zstd",
}
SOURCES = ["iana", "apache", "nginx", None]


def chosen(database, extension):
    """The media type of an extension: of those registered with IANA first, then without a prefix, then the shortest."""
    if extension in CHOSEN:
        return CHOSEN[extension]
    named = [(name, entry) for name, entry in database.items() if extension in entry.get("extensions", [])]
    if not named:
        return None

    def rank(candidate):
        name, entry = candidate
        subtype = name.split("/")[1]
        return SOURCES.index(entry.get("source")), subtype.startswith(("x-", "vnd.")), len(name), name

    return min(named, key=rank)[0]


def main():
    """Writes the table, one extension a line."""
    database = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    table = pathlib.Path(__file__).parent / "src/website/media_types.txt"
    lines = []
    for extension in sorted(set(EXTENSIONS.split())):
        media_type = chosen(database, extension)
        if media_type in (None, "application/octet-stream"):
            sys.exit(f"media_types.py: {extension}: the database has no media type, name one in CHOSEN")
        # Clients read text without a charset in a charset that they choose.
        charset = "; charset=utf-8" if media_type.startswith("text/") else ""
        lines.append(f"{extension} {media_type}{charset}\n")
    table.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
