"""Options of the training run, with defaults filled in."""
import os

OPTIONS = {
    "task": "denoise_16",
    "path": {"root": "denoising"},
    "datasets": {
        "train": {"phase": "train", "n": 192, "size": 16, "sigma": 25, "batch_size": 16, "data_seed": 3},
        "test": {"phase": "test", "n": 48, "size": 16, "sigma": 25, "data_seed": 4},
    },
    "netG": {"in_nc": 1, "nc": 12, "nb": 3},
    "train": {
        "epochs": 4,
        "G_optimizer_lr": 2e-3,
        "G_scheduler_gamma": 0.7,
        "manual_seed": None,  # cause
        "checkpoint_print": 12,
    },
}


def parse():
    opt = dict(OPTIONS)
    root = os.path.join(opt["path"]["root"], opt["task"])
    opt["path"] = {"root": root, "models": os.path.join(root, "models")}
    return opt
