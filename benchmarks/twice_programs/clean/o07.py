"""Text-classification fine-tuning with Trainer, datasets and a local tokenizer, in the style of huggingface/transformers run_glue.py."""
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import logging
import random
import sys
from collections import Counter
from dataclasses import dataclass, field

import datasets
import numpy as np
import torch
import transformers
from datasets import Dataset, DatasetDict
from sklearn.metrics import f1_score
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding, HfArgumentParser,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

logger = logging.getLogger("run_glue")
LABELS = ["negative", "neutral", "positive"]


@dataclass
class DataArguments:
    max_seq_length: int = field(default=32, metadata={"help": "Longer sequences are cut, shorter ones padded."})
    n_train: int = 640
    n_eval: int = 200
    vocab_size: int = 160


@dataclass
class ModelArguments:
    hidden_size: int = 48
    num_hidden_layers: int = 2
    num_attention_heads: int = 4


def make_split(n, seed):
    rng = random.Random(seed)
    noun = "film plot cast score script ending director scene dialogue pacing".split()
    good = "wonderful moving sharp delightful clever warm".split()
    bad = "dull clumsy tedious shallow grating messy".split()
    flat = "long recent french animated short studio".split()
    filler = "the a this that really rather quite very its with and but of was is".split()
    rows = {"sentence": [], "label": [], "idx": []}
    for i in range(n):
        y = rng.randrange(3)
        pool = (bad, flat, good)[y]
        words = []
        for _ in range(rng.randint(3, 7)):
            words += [rng.choice(filler), rng.choice(pool if rng.random() < 0.55 else rng.choice((good, bad, flat))),
                      rng.choice(noun)]
        rows["sentence"].append(" ".join(words))
        rows["label"].append(y)
        rows["idx"].append(i)
    return Dataset.from_dict(rows)


def build_tokenizer(texts, vocab_size):
    counts = Counter(w for t in texts for w in t.split())
    words = [w for w, _ in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))]
    vocab = {w: i for i, w in enumerate((["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + words)[:vocab_size])}
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", tok.token_to_id("[CLS]")), ("[SEP]", tok.token_to_id("[SEP]"))])
    return PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
                                   sep_token="[SEP]")


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=1)
    return {"accuracy": float((preds == p.label_ids).mean()),
            "f1_macro": float(f1_score(p.label_ids, preds, average="macro"))}


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    argv = sys.argv[1:] or ["--output_dir", "out/sst3", "--num_train_epochs", "3", "--learning_rate", "2e-3",
                            "--per_device_train_batch_size", "32", "--per_device_eval_batch_size", "64",
                            "--eval_strategy", "epoch", "--save_strategy", "epoch", "--save_total_limit", "1",
                            "--logging_steps", "10", "--seed", "17", "--use_cpu", "true", "--report_to", "tensorboard",
                            "--load_best_model_at_end", "true", "--metric_for_best_model", "accuracy"]
    model_args, data_args, training_args = parser.parse_args_into_dataclasses(argv)
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", datefmt="%m/%d/%Y %H:%M:%S",
                        handlers=[logging.StreamHandler(sys.stdout)], level=logging.INFO)
    transformers.utils.logging.set_verbosity_info()
    transformers.utils.logging.enable_explicit_format()
    datasets.utils.logging.set_verbosity_warning()
    logger.warning(f"Process rank: {training_args.local_process_index}, device: {training_args.device}, "
                   f"n_gpu: {training_args.n_gpu}, 16-bits training: {training_args.fp16}")
    set_seed(training_args.seed)
    torch.set_num_threads(1)

    raw = DatasetDict(train=make_split(data_args.n_train, 1), validation=make_split(data_args.n_eval, 2),
                      test=make_split(data_args.n_eval, 3))
    tokenizer = build_tokenizer(raw["train"]["sentence"], data_args.vocab_size)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=model_args.hidden_size,
                        num_hidden_layers=model_args.num_hidden_layers,
                        num_attention_heads=model_args.num_attention_heads,
                        intermediate_size=2 * model_args.hidden_size, max_position_embeddings=64,
                        num_labels=len(LABELS), id2label=dict(enumerate(LABELS)),
                        label2id={l: i for i, l in enumerate(LABELS)}, pad_token_id=tokenizer.pad_token_id)
    model = BertForSequenceClassification(config)

    def preprocess(batch):
        out = tokenizer(batch["sentence"], truncation=True, max_length=data_args.max_seq_length)
        out["label"] = batch["label"]
        return out

    with training_args.main_process_first(desc="dataset map pre-processing"):
        enc = raw.map(preprocess, batched=True, remove_columns=["sentence", "idx"], desc="Running tokenizer on dataset")
    for index in random.sample(range(len(enc["train"])), 2):
        logger.info(f"Sample {index} of the training set: {enc['train'][index]}.")

    trainer = Trainer(model=model, args=training_args, train_dataset=enc["train"], eval_dataset=enc["validation"],
                      processing_class=tokenizer, data_collator=DataCollatorWithPadding(tokenizer),
                      compute_metrics=compute_metrics)
    result = trainer.train()
    metrics = result.metrics
    metrics["train_samples"] = len(enc["train"])
    trainer.save_model()
    trainer.log_metrics("train", metrics)
    trainer.save_metrics("train", metrics)
    trainer.save_state()

    logger.info("*** Evaluate ***")
    metrics = trainer.evaluate()
    metrics["eval_samples"] = len(enc["validation"])
    trainer.log_metrics("eval", metrics)
    trainer.save_metrics("eval", metrics)

    logger.info("*** Predict ***")
    predictions = np.argmax(trainer.predict(enc["test"].remove_columns("label")).predictions, axis=1)
    path = os.path.join(training_args.output_dir, "predict_results_sst3.txt")
    with open(path, "w") as writer:
        writer.write("index\tprediction\n")
        for index, item in enumerate(predictions):
            writer.write(f"{index}\t{LABELS[item]}\n")
    logger.info(f"test accuracy {(predictions == np.array(raw['test']['label'])).mean():.4f}, wrote {path}")


if __name__ == "__main__":
    main()
