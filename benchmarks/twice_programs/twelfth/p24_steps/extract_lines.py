"""Emits one tab-separated record per text element of the given pages."""
import re
import sys
from pathlib import Path

ELEMENT = re.compile(r"<(h2|p|li)>(.*?)</\1>")


def records(path):
    for n, m in enumerate(ELEMENT.finditer(path.read_text())):
        tag, text = m.groups()
        words = text.split()
        yield path.stem, n, tag, len(words), sum(map(len, words)), text


def main():
    for name in sys.argv[1:]:
        for rec in records(Path(name)):
            sys.stdout.write("\t".join(map(str, rec)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
