import argparse
from dataclasses import dataclass, field, fields


@dataclass
class TrainingArguments:
    max_steps: int = 6
    gradient_accumulation_steps: int = 2
    per_device_batch_size: int = 4
    learning_rate: float = 1e-3
    seed: int = 42
    optim: str = field(default="adamw")
    masking: str = "fixed"
    layer_drop: float = 0.0
    checkpointing: bool = False
    prepare: str = "inline"
    tokens: str = "fixed"


def parse():
    parser = argparse.ArgumentParser()
    for each in fields(TrainingArguments):
        if each.type is bool:
            parser.add_argument(f"--{each.name}", action="store_true")
        else:
            parser.add_argument(f"--{each.name}", type=each.type, default=each.default)
    return TrainingArguments(**vars(parser.parse_args()))
