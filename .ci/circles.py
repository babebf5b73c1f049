#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""circles.py: fails when modules of a crate use each other in a circle.

The entries of a folder (a file, a folder, or x.rs with its folder x/, as one) are compared at each level. The modules
inside an entry count as the entry. A folder's children and its mod.rs may use each other, so these uses do not count.
A re-exported item counts as part of its original module. `#[cfg(test)]` modules are not read.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STRING = re.compile(r'b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"', re.S)
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub\s+)?mod\s+\w+\s*\{")


def without_tests(text):
    """The text without the modules marked `#[cfg(test)]`."""
    while match := TESTS.search(text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: match.start()] + text[end:]
    return text


def split(tree):
    """The members of a use tree's braces."""
    members, depth, start = [], 0, 0
    for at, char in enumerate(tree):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and not depth:
            members.append(tree[start:at])
            start = at + 1
    return [member for member in (*members, tree[start:]) if member.strip()]


def expand(tree):
    """The paths of a use tree, each with its local name."""
    tree = tree.strip()
    if brace := re.match(r"((?:\w+::)*)\{(.*)\}$", tree, re.S):
        prefix = brace.group(1)
        return [(prefix + path, name) for member in split(brace.group(2)) for path, name in expand(member)]
    path, _, name = (part.strip() for part in tree.partition(" as "))
    path = path.removesuffix("::self")
    return [(path, name or path.rsplit("::", 1)[-1])]


class Crate:
    """The modules of a crate, with their re-exports and uses."""

    def __init__(self, source):
        self.source = source
        self.modules = {}
        for file in sorted(source.rglob("*.rs")):
            parts = file.relative_to(source).with_suffix("").parts
            if parts[-1] in ("mod", "lib"):
                parts = parts[:-1]
            if parts != ("main",) and parts[-1:] != ("tests",):
                text = STRING.sub('""', COMMENT.sub("", file.read_text(encoding="utf-8")))
                self.modules[parts] = without_tests(text)
        self.exports = {module: dict(self.exported(module)) for module in self.modules}

    def exported(self, module):
        """The names that a module re-exports, with their paths."""
        for match in USE.finditer(self.modules[module]):
            if match.group(1):
                yield from ((name, path) for path, name in expand(match.group(2)))

    def absolute(self, module, path):
        """A path from the crate's root; None if it leaves the crate."""
        parts = path.split("::")
        if parts[0] == "crate":
            return tuple(parts[1:])
        here = module
        while parts and parts[0] in ("self", "super"):
            here = here[:-1] if parts.pop(0) == "super" else here
        if path.startswith(("self", "super")) or (*here, parts[0]) in self.modules:
            return (*here, *parts)
        return None

    def home(self, path, seen=()):
        """The module of a path from the root, after resolving re-exports."""
        module = path
        while module not in self.modules:
            module = module[:-1]
        rest = path[len(module) :]
        export = self.exports[module].get(rest[0]) if rest else None
        if export and (module, rest) not in seen:
            further = self.absolute(module, export)
            if further is not None:
                return self.home((*further, *rest[1:]), (*seen, (module, rest)))
        return module

    def uses(self, module):
        """The modules that a module names."""
        text = self.modules[module]
        trees = USE.findall(text)
        # A re-exported module counts where it is used.
        named = [path for public, tree in trees if not public for path, _ in expand(tree)]
        named += PATH.findall(USE.sub("", text))
        paths = (self.absolute(module, path) for path in named)
        return {self.home(path) for path in paths if path is not None} - {module}

    def arrows(self):
        """For each folder, the arrows between its entries, each with the modules that cause it."""
        levels = {}
        for module in self.modules:
            for other in self.uses(module):
                common = 0
                while module[common : common + 1] == other[common : common + 1] != ():
                    common += 1
                if len(module) > common and len(other) > common:
                    level = levels.setdefault(module[:common], {})
                    level.setdefault((module[common], other[common]), []).append((module, other))
        return levels

    def circles(self):
        """Lines that name each circle."""
        for folder, arrows in sorted(self.arrows().items()):
            for circle in components(arrows):
                yield f"{self.source.relative_to(ROOT).joinpath(*folder)}: {', '.join(sorted(circle))}"
                for (start, end), causes in sorted(arrows.items()):
                    if start in circle and end in circle:
                        names = sorted({f"{'/'.join(a)} -> {'/'.join(b)}" for a, b in causes})
                        yield from (f"    {name}" for name in names)


def reachable(start, arrows):
    """The entries that can be reached from an entry. They include the entry itself only if it is in a circle."""
    found, waiting = set(), [start]
    while waiting:
        here = waiting.pop()
        new = {end for begin, end in arrows if begin == here} - found
        found |= new
        waiting += new
    return found


def components(arrows):
    """The sets of entries that reach each other."""
    entries = {entry for arrow in arrows for entry in arrow}
    reach = {entry: reachable(entry, arrows) for entry in entries}
    circles = {frozenset(b for b in reach[a] if a in reach[b]) for a in entries if a in reach[a]}
    return sorted(circles, key=sorted)


def sources():
    """The folder of each crate, including tests that are crates."""
    listed = subprocess.run(
        ["git", "ls-files", "*/lib.rs", "*/main.rs"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return sorted({str(pathlib.Path(line).parent) for line in listed.splitlines()})


def main():
    """Prints the circles of all crates, or of the crates whose sources are named."""
    lines = [line for name in sys.argv[1:] or sources() for line in Crate(ROOT / name).circles()]
    if lines:
        print("\n".join(["modules use each other in a circle:", *lines]), file=sys.stderr)
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
