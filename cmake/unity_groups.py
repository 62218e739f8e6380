#!/usr/bin/env python3
"""Which sources may be compiled together: `unity_groups.py LINES FILE...` prints the number of a group
a line, in the order of the files.

Files of one group become one translation unit, so no two of them may define the same name in their
unnamed namespaces. What a file defines is guessed generously from the lines that begin at the left
margin there: a name too many only sends a file to another group. A group holds at most about LINES lines.
"""

import re
import sys

# "class Name", "#define NAME"; "constexpr int kName = 3;", "using Name = X;"; "int function(".
NAMED = re.compile(r"(?:class|struct|union|enum class|enum|#define|namespace)\s+(\w+)")
CONSTANT = re.compile(r"[^(]*?\b(\w+)(?:\[[^\]]*\])*\s*(?:=|;|\{)")
FUNCTION = re.compile(r"[^(=]*?\b(\w+)\(")
# Test cases have names of their own in any program; naming something of another namespace twice is
# no harm.
HARMLESS = re.compile(r"[A-Z_]+\(|using [\w:]+;")


def defined_names(text):
    """The names that a source may define in unnamed namespaces, and its macros."""
    names = set()
    unnamed = False
    for line in text.splitlines():
        if line.startswith("namespace {"):
            unnamed = True
        elif line.startswith("}  // namespace") and line.strip().endswith("namespace"):
            unnamed = False
        elif line.startswith("#define") or (unnamed and line[:1] not in " \t}/"):
            if HARMLESS.match(line):
                continue
            for pattern in (NAMED, CONSTANT, FUNCTION):
                match = pattern.match(line)
                if match:
                    names.add(match.group(1))
    return names


def sort_into_groups(sources, most_lines):
    """Puts each text into the first group that has room and none of its names: the groups' numbers."""
    names_of, lines_of, numbers = [], [], []
    for text in sources:
        names, lines = defined_names(text), text.count("\n")
        for number, taken in enumerate(names_of):
            if lines_of[number] + lines <= most_lines and not taken & names:
                break
        else:
            number = len(names_of)
            names_of.append(set())
            lines_of.append(0)
        names_of[number] |= names
        lines_of[number] += lines
        numbers.append(number)
    return numbers


def main():
    """Reads the files and prints their groups."""
    sources = []
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            sources.append(file.read())
    for number in sort_into_groups(sources, int(sys.argv[1])):
        print(number)


if __name__ == "__main__":
    main()
