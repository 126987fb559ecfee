"""A little module base class: hyper-parameters and checkpoints."""
import torch
from torch import nn


class BaseModule(nn.Module):
    """Keeps the constructor arguments, so a checkpoint can rebuild the model."""

    def __init__(self, **hparams):
        super().__init__()
        self.hparams = dict(hparams)

    def save_checkpoint(self, path, epoch, metrics):
        torch.save(
            {
                "epoch": epoch,
                "hparams": self.hparams,
                "state_dict": self.state_dict(),
                "metrics": metrics,
            },
            path,
        )

    @classmethod
    def load_from_checkpoint(cls, path):
        """Build a model from the checkpoint at path and return it."""
        blob = torch.load(path, weights_only=False)
        model = cls(**blob["hparams"])
        model.load_state_dict(blob["state_dict"])
        return model
