"""What somebody may have meant who names a package that no index has."""

from __future__ import annotations

import difflib

from .case import Advice, Case

IMPORTED_AS = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "git": "gitpython",
    "pil": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "pytorch": "torch",
    "pytorch-geometric": "torch-geometric",
    "umap": "umap-learn",
    "hydra": "hydra-core",
    "ldap": "python-ldap",
}
"""Names that code is imported by, or known by, and the packages that have it."""

OFTEN_MEANT = (
    *("accelerate", "albumentations", "bitsandbytes", "datasets", "deepspeed", "diffusers"),
    *("einops", "fastapi", "gradio", "huggingface-hub", "hydra-core", "jupyterlab", "lightning"),
    *("matplotlib", "networkx", "numpy", "omegaconf", "onnxruntime", "opencv-python", "pandas"),
    *("peft", "pillow", "polars", "protobuf", "pyarrow", "pytest", "pytorch-lightning", "pyyaml"),
    *("requests", "safetensors", "scikit-image", "scikit-learn", "scipy", "seaborn"),
    *("sentence-transformers", "sentencepiece", "spacy", "statsmodels", "sympy", "tensorboard"),
    *("tiktoken", "timm", "tokenizers", "torch", "torchaudio", "torchmetrics", "torchvision"),
    *("tqdm", "transformers", "triton", "ultralytics", "vllm", "wandb", "xformers", "xgboost"),
)
"""Packages beside PyTorch that requests name most; an index's list of all names is large."""


def near_names(name: str) -> list[str]:
    """Return at most three packages that may have been meant, the nearest first; none where none is near."""
    if meant := IMPORTED_AS.get(name):
        return [meant]
    return difflib.get_close_matches(name, OFTEN_MEANT, n=3, cutoff=0.8)


def advise(case: Case) -> Advice:
    """Name what may be meant by the packages that no index has."""
    unknown = sorted(case.refusal.unknown) if case.refusal is not None else []
    near = {name: near_names(name) for name in unknown}
    return Advice(
        lines=tuple(f"{n}: perhaps {' or '.join(meant)} is meant" for n, meant in near.items() if meant)
    )
