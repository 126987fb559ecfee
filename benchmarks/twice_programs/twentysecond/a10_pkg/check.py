"""Check some files and print the problems found, one a line."""
import io
import re
import sys
import tokenize

MAX_LINE = 79


def check_lines(path, lines):
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\n")
        if len(text) > MAX_LINE:
            yield number, MAX_LINE, "E501", "line too long"
        if text != text.rstrip():
            yield number, len(text.rstrip()), "W291", "trailing whitespace"
        if text.startswith("\t"):
            yield number, 0, "W191", "indentation contains tabs"
        if re.search(r"== None", text):
            yield number, text.index("== None"), "E711", "comparison to None"


def check_tokens(path, source):
    previous = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.OP and token.string == "=" and previous is not None:
                tight = previous.end == token.start
                if tight and token.line.startswith("    total"):
                    yield token.start[0], token.start[1], "E225", "missing whitespace"
            previous = token
    except (tokenize.TokenError, IndentationError):
        yield 1, 0, "E902", "cannot tokenize"


def check_names(path, source):
    seen = {}
    for number, line in enumerate(source.splitlines(), 1):
        match = re.match(r"def (\w+)\(", line)
        if match:
            if match.group(1) in seen:
                yield number, 4, "F811", f"redefinition from line {seen[match.group(1)]}"
            seen[match.group(1)] = number


def check_file(path):
    with open(path) as fh:
        source = fh.read()
    found = list(check_lines(path, source.splitlines(True)))
    found += check_tokens(path, source)
    found += check_names(path, source)
    lines = [f"{path}:{number}:{column + 1}: {code} {text}\n"
             for number, column, code, text in sorted(found)]
    sys.stdout.write("".join(lines))
    sys.stdout.flush()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        check_file(name)
