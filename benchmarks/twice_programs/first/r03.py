# deep-tempest#13: the default seed is drawn
import argparse, random
from proj.trainer import Trainer, seed_everything
from proj.models import Net
from proj.data import batches, table

def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--manual_seed", type=int)
    parser.add_argument("--epochs", type=int, default=2)
    return parser.parse_args()

def main():
    opt = options()
    if opt.manual_seed is None:
        opt.manual_seed = random.randint(1, 10000)  # cause
    seed_everything(opt.manual_seed)
    Trainer(Net(6, 1), "restore").fit(batches(*table()), opt.epochs)

main()
