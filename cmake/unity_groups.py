#!/usr/bin/env python3
"""Which sources may be compiled together: `unity_groups.py LINES FILE...` prints the number of a group
a line, in the order of the files.

Files of one group become one translation unit, so no two of them may define the same name in their
unnamed namespaces. What a file defines is guessed generously from the lines that begin at the left
margin there: a name too many only sends a file to another group. An alias (`using Json = ...;`) may
be in several files that mean the same. A group holds at most about LINES lines.
"""

import re
import sys

# "class Name : Base {", "#define NAME"; "constexpr int kName = 3;"; "int function(".
TYPE = re.compile(r"(?:class|struct|union|enum class|enum)\s+(\w+)\s*(?:$|[:{;]|final\b)")
NAMED = re.compile(r"(?:class|struct|union|enum class|enum|#define|namespace)\s+(\w+)")
CONSTANT = re.compile(r"[^(]*?\b(\w+)(?:\[[^\]]*\])*\s*(?:=|;|\{)")
FUNCTION = re.compile(r"[^(=]*?\b(\w+)\(")
ALIAS = re.compile(r"(?:using|namespace) (\w+) = ")
# Test cases have names of their own in any program; naming something of another namespace twice is
# no harm.
HARMLESS = re.compile(r"[A-Z_]+\(|using (?:namespace )?[\w:]+;")


def names_in(line):
    """What a line may define: name -> what it stands for, or None where that is its own."""
    alias = ALIAS.match(line)
    if alias:
        return {alias.group(1): line}
    patterns = (TYPE,) if TYPE.match(line) else (NAMED, CONSTANT, FUNCTION)
    matches = [pattern.match(line) for pattern in patterns]
    return {match.group(1): None for match in matches if match}


def defined_names(text):
    """The names that a source may define in unnamed namespaces, and its macros, as `names_in`."""
    names = {}
    unnamed = False
    for line in text.splitlines():
        if line.startswith("namespace {"):
            unnamed = True
        elif line.startswith("}  // namespace") and line.strip().endswith("namespace"):
            unnamed = False
        elif line.startswith("#define") or (unnamed and line[:1] not in " \t}/"):
            if not HARMLESS.match(line):
                names.update(names_in(line))
    return names


def clash(taken, names):
    """Whether a group that has the names `taken` cannot take these as well."""
    return any(name in taken and (meaning is None or taken[name] != meaning)
               for name, meaning in names.items())


def sort_into_groups(sources, most_lines):
    """Puts each text into the first group that has room and none of its names: the groups' numbers."""
    names_of, lines_of, numbers = [], [], []
    for text in sources:
        names, lines = defined_names(text), text.count("\n")
        for number, taken in enumerate(names_of):
            if lines_of[number] + lines <= most_lines and not clash(taken, names):
                break
        else:
            number = len(names_of)
            names_of.append({})
            lines_of.append(0)
        names_of[number].update(names)
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
