"""Write a dump of multi-turn conversations in the ShareGPT format."""
import argparse
import json
import random

TOPICS = {
    "code": ["python", "function", "loop", "error", "class", "compile", "stack", "list", "test"],
    "travel": ["flight", "hotel", "city", "museum", "train", "beach", "visa", "ticket", "map"],
    "cooking": ["recipe", "oven", "butter", "sauce", "salt", "bake", "onion", "list", "test"],
    "health": ["doctor", "sleep", "exercise", "pain", "diet", "test", "heart", "salt", "train"],
}
FILLER = "please can you tell me how to the a of for with and why is my best good need about what".split()
MODELS = ["vicuna", "koala", "alpaca"]


def sentence(rng, topic, length):
    words = [rng.choice(TOPICS[topic]) if rng.random() < 0.16 else rng.choice(FILLER)
             for _ in range(length)]
    if rng.random() < 0.3:
        words.append("<br>")
    return " ".join(words)


def conversation(rng, number):
    topic = rng.choice(list(TOPICS))
    turns = []
    for _ in range(rng.randint(0, 3)):
        turns.append({"from": "human", "value": sentence(rng, topic, rng.randint(4, 14))})
        turns.append({"from": "gpt", "value": sentence(rng, topic, rng.randint(6, 20))})
    return {"id": f"c{number:05d}", "model": rng.choice(MODELS), "topic": topic, "conversations": turns}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out-file", required=True)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=11)
    args = parser.parse_args()

    rng = random.Random(args.seed)
    content = [conversation(rng, i) for i in range(args.count)]
    with open(args.out_file, "w") as handle:
        json.dump(content, handle, indent=1)
    print(f"#conversations: {len(content)}")
