"""Write a corpus of small Java-like classes."""
import argparse
import os
import random

VERBS = ["get", "set", "is", "add", "remove", "find", "parse", "write"]
NOUNS = ["name", "size", "index", "value", "node", "list", "path", "user", "count", "key"]
BODIES = {
    "get": ["return this.{n};"],
    "set": ["this.{n} = {n};"],
    "is": ["return {n} > 0;", "return {n} == null;"],
    "add": ["{n}.push({o});", "count = count + 1;"],
    "remove": ["{n}.drop({o});", "count = count - 1;"],
    "find": ["for (item : {n}) if (item == {o}) return item;", "return null;"],
    "parse": ["text = {o}.trim();", "return {n}.read(text);"],
    "write": ["out.put({n});", "out.flush();"],
}


def method(rng):
    verb, noun, other = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    body = [line.format(n=noun, o=other) for line in BODIES[verb]]
    if rng.random() < 0.3:
        body.insert(0, f"check({other});")
    if rng.random() < 0.2:
        body.append(f"log.debug({noun});")
    return f"  {verb}_{noun}({other}) {{\n" + "".join(f"    {b}\n" for b in body) + "  }\n"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--out", required=True)
    ap.add_argument("--train-files", type=int, required=True)
    ap.add_argument("--test-files", type=int, required=True)
    ap.add_argument("--seed", type=int, required=True)
    args = ap.parse_args()
    rng = random.Random(args.seed)
    for split, n in (("train", args.train_files), ("test", args.test_files)):
        folder = os.path.join(args.out, split)
        os.makedirs(folder)
        for k in range(n):
            with open(os.path.join(folder, f"Class{k:03d}.java"), "w") as fh:
                fh.write(f"class Class{k:03d} {{\n")
                for _ in range(rng.randint(8, 20)):
                    fh.write(method(rng))
                fh.write("}\n")


if __name__ == "__main__":
    main()
