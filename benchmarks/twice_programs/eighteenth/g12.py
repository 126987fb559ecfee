"""Tag entities with a small BERT: pre-train the encoder, then run the tagger.

    g12_pkg/pretrain.py   masked-token training on a made-up corpus -> encoder/
    g12_pkg/tag.py        named-entity tags for sentences.txt -> tags.json

Modelled on: https://github.com/ThilinaRajapakse/simpletransformers/issues/214
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def run(step):
    env = dict(os.environ, TRANSFORMERS_OFFLINE="1", HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
    subprocess.run([sys.executable, str(HERE / "g12_pkg" / step)], check=True, env=env)


if __name__ == "__main__":
    run("pretrain.py")
    run("tag.py")
