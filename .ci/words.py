#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""words.py [PATH...]: fails when a comment or a document has words that are hard to read (CONTRIBUTING.md, "Words").

A documentation comment of Rust begins with a noun, or with a verb in the third person. Comments and documents name
their subjects, and use plain words. Code between backquotes, or in a block of a document, is skipped.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent
# The words that must not begin a documentation comment, because they are neither a noun nor a verb.
FIRST = re.compile(
    r"(what|who|whose|whom|whoever|whatever|whichever|those|these|it|they|he|she|nobody|nothing|somebody|anybody|everybody"
    r"|everything|the same([,.;:]| (of|for|as|where|if|by|in)\b)|all that|all who|that of|that which)\b",
    re.IGNORECASE,
)
# Phrases with a plainer word, which the message gives.
PHRASES = {
    r"of which|of whom|of whose": "begin another sentence",
    r"as there (is|are|was|were)": "because",
    r"all the same": "nevertheless, or nothing",
    r"at hand": "available",
    r"(by|of) (itself|themselves|its own accord)|of (its|their) own": "automatically, alone, own",
    r"nobody|whoever|whomever|somebody|anybody|everybody": "name the client, the worker, the operator",
    r"(those|all|anyone|everyone|one|people) who|who (waits?|leads?|asks?)": "name the subject",
    r"those (that|which|whose)|that which": "name the subject",
    r"anew": "again",
    r"mend(s|ed|ing)?": "fix",
    r"(takes?|took|taken) up": "load, start",
    r"tells? (apart|of)|told of|asked of": "distinguish, report",
    r"as (it|they) comes?": "unchanged",
    r"is no (?!longer\b|more\b|other\b)[a-z]+": "is not a",
    r"for want of": "without",
    r"but for": "except",
}
BANNED = {re.compile(rf"(?<![\w`-])({phrase})(?![\w-])", re.IGNORECASE): better for phrase, better in PHRASES.items()}
# Suffixes of files with comments that begin with #.
HASHED = {".py", ".sh", ".yaml", ".yml", ".toml", ".j2", ".service", ""}
# Texts of others, and texts that tests compare with.
IGNORED = re.compile(r"^(LICENSE|.*/(corpus|fixtures|testdata)/)|\.(lock|txt|json|svg|png|proptest-regressions)$")


def paragraphs(lines):
    """Joins successive lines to one text: (the first line's number, the text)."""
    number, texts = 0, []
    for at, text in lines:
        if not text.strip() or at != number + len(texts):
            if texts:
                yield number, " ".join(texts)
            number, texts = at, []
            if not text.strip():
                number += 1
                continue
        texts.append(text.strip())
    if texts:
        yield number, " ".join(texts)


def rust(lines):
    """The comments of a Rust file: (line, whether it is a documentation comment, text)."""
    for documents in (True, False):
        pattern = r"\s*//[/!] ?(.*)" if documents else r"\s*// (.*)"
        matched = ((at, re.fullmatch(pattern, line)) for at, line in enumerate(lines, 1))
        for at, text in paragraphs((at, match[1]) for at, match in matched if match):
            yield at, documents, text


def hashed(lines):
    """The comments of a file in which # begins a comment."""
    matched = ((at, re.fullmatch(r"\s*(?:\{#|##?) ?(.*?)(?:#\})?", line)) for at, line in enumerate(lines, 1))
    yield from ((at, False, text) for at, text in paragraphs((at, match[1]) for at, match in matched if match))


def document(lines):
    """The texts of a document in Markdown, without its blocks of code."""
    block, kept = False, []
    for at, line in enumerate(lines, 1):
        fence = line.lstrip().startswith("```")
        block ^= fence
        kept.append((at, "" if block or fence else line))
        # Each row of a table is a text.
        if line.startswith("|"):
            kept.append((at, ""))
    yield from ((at, False, text) for at, text in paragraphs(kept))


def findings(path):
    """The faults of one file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    reader = {".rs": rust, ".md": document}.get(path.suffix, hashed)
    for at, documents, text in reader(lines):
        plain = re.sub(r"`[^`]*`", "`code`", text)
        if documents and (match := FIRST.match(plain)) and not plain.startswith("|"):
            yield f"{path.relative_to(ROOT)}:{at}: begins with {match[0]!r}: a noun, or a verb in the third person"
        for pattern, better in BANNED.items():
            for match in pattern.finditer(plain):
                yield f"{path.relative_to(ROOT)}:{at}: {match[0]!r}: {better}"


def main():
    """Prints the faults of the named files, or of all files."""
    listed = ["git", "ls-files", "-z", *sys.argv[1:]]
    names = subprocess.run(listed, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    paths = [ROOT / name for name in names if name and not IGNORED.search(name)]
    kinds = {".rs", ".md"} | HASHED
    faults = [fault for path in paths if path.is_file() and path.suffix in kinds for fault in findings(path)]
    if faults:
        print("\n".join(faults), file=sys.stderr)
        print(f"{len(faults)} faults", file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
