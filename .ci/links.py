#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""links.py: fails when a Markdown file links to a missing file or heading, or when the book lacks a page.

Links to the Internet are not followed.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = ROOT / "docs/SUMMARY.md"
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)


def pages():
    """Every Markdown file that is in the repository, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    return [page for page in (ROOT / line for line in listed.splitlines()) if page.exists()]


def prose(page):
    """The text without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """The anchors of the page's headings, as GitHub and mdBook make them."""
    found = set()
    for heading in HEADING.findall(prose(page)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        repeated = sum(1 for anchor in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", anchor))
        found.add(f"{slug}-{repeated}" if repeated else slug)
    return found


def fault(page, link):
    """The fault of a link of the page, or None."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return "no such file"
    if not target.is_relative_to(ROOT):
        return "outside of the repository"
    if anchor and (target.suffix != ".md" or anchor not in anchors(target)):
        return "no such heading"
    return None


def faults():
    """All faults, one on each line."""
    everything = pages()
    for page in everything:
        for link in LINK.findall(prose(page)):
            if re.match(r"[a-z]+:", link):
                continue
            wrong = fault(page, link)
            if wrong:
                yield f"{page.relative_to(ROOT)}: {link}: {wrong}"
    book = {(SUMMARY.parent / link).resolve() for link in LINK.findall(prose(SUMMARY))}
    for page in everything:
        if page not in book | {SUMMARY}:
            yield f"docs/SUMMARY.md: {page.relative_to(ROOT)} is not in the book"


def main():
    """Prints all faults."""
    wrong = list(faults())
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
