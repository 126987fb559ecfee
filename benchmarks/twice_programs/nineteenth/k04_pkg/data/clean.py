"""Remove markup, drop empty conversations and duplicates."""
import argparse
import json
import re


def clean_value(text):
    text = re.sub(r"<[^>]+>", " ", text)
    return re.sub(r"\s+", " ", text).strip().lower()


def clean(content):
    result, known = [], set()
    for sample in content:
        turns = [dict(t, value=clean_value(t["value"])) for t in sample["conversations"]]
        turns = [t for t in turns if t["value"]]
        key = "\n".join(t["value"] for t in turns)
        if not turns or key in known:
            continue
        known.add(key)
        result.append(dict(sample, conversations=turns))
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--in-file", required=True)
    parser.add_argument("--out-file", required=True)
    args = parser.parse_args()
    with open(args.in_file) as handle:
        content = json.load(handle)
    kept = clean(content)
    with open(args.out_file, "w") as handle:
        json.dump(kept, handle, indent=1)
    print(f"#in: {len(content)}, #out: {len(kept)}")
