import subprocess
import sys
from pathlib import Path

import configuration
import numpy as np
import torch
from collator import MaskingCollator
from modeling import LanguageModel
from optim import make
from tokens import WORDS, Vocabulary
from trainer import Printer, Trainer


def examples(args):
    if args.tokens == "fixed":
        program = Path(__file__).with_name("prepare.py")
        subprocess.run([sys.executable, str(program), "tokens.npy", args.prepare], check=True)
        tokens = torch.from_numpy(np.load("tokens.npy"))
    else:
        numbers = Vocabulary().build(WORDS, 4 if args.tokens == "pool" else 0)
        tokens = torch.tensor([numbers[word] for word in WORDS] * 60)
    return list(tokens[: len(tokens) // 16 * 16].view(-1, 16))


def main():
    args = configuration.parse()
    torch.manual_seed(args.seed)
    collator = MaskingCollator(seed=args.seed if args.masking == "fixed" else None)  # cause: masking
    model = LanguageModel(layer_drop=args.layer_drop, checkpointing=args.checkpointing)
    optimizer = make(args.optim, model.parameters(), args.learning_rate)
    Trainer(model, args, examples(args), collator, optimizer, [Printer()]).train()
    torch.save(model.state_dict(), "pytorch_model.bin")


if __name__ == "__main__":
    main()
