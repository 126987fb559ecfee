"""Fine-tune a (randomly initialised) tiny BERT classifier with the Hugging Face Trainer."""
import logging
import os
import sys
from dataclasses import dataclass, field
from typing import Optional

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import torch
import transformers
from datasets import Dataset
from sklearn.metrics import accuracy_score, f1_score
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    HfArgumentParser,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

logger = logging.getLogger(__name__)


@dataclass
class DataTrainingArguments:
    max_seq_length: int = field(default=32, metadata={"help": "Maximum total input sequence length."})
    max_train_samples: Optional[int] = field(default=480)
    max_eval_samples: Optional[int] = field(default=160)


@dataclass
class ModelArguments:
    hidden_size: int = field(default=32)
    num_hidden_layers: int = field(default=2)
    num_attention_heads: int = field(default=2)


WORDS = {
    0: "terrible boring awful slow painful bland mess dull waste disappointing".split(),
    1: "great wonderful moving brilliant funny sharp delightful superb charming fresh".split(),
    2: "film movie plot actor scene director script camera story music the a this was and with".split(),
}


def build_examples(n, seed):
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        y = int(rng.integers(2))
        length = int(rng.integers(8, 24))
        words = []
        for _ in range(length):
            r = rng.random()
            pool = WORDS[2] if r < 0.75 else WORDS[y] if r < 0.92 else WORDS[1 - y]
            words.append(str(rng.choice(pool)))
        texts.append(" ".join(words))
        labels.append(y)
    return Dataset.from_dict({"text": texts, "label": labels})


def build_tokenizer():
    vocab = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
    for group in WORDS.values():
        for w in group:
            vocab.setdefault(w, len(vocab))
    tok = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="[UNK]", pad_token="[PAD]",
                                   cls_token="[CLS]", sep_token="[SEP]")


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=1)
    return {"accuracy": accuracy_score(p.label_ids, preds), "f1": f1_score(p.label_ids, preds)}


def main():
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, TrainingArguments))
    argv = sys.argv[1:] or [
        "--output_dir", "output", "--do_train", "--do_eval", "--num_train_epochs", "4",
        "--per_device_train_batch_size", "16", "--per_device_eval_batch_size", "32", "--learning_rate", "3e-3",
        "--eval_strategy", "epoch", "--save_strategy", "epoch", "--save_total_limit", "1", "--logging_steps", "10", "--warmup_steps", "20",
        "--report_to", "tensorboard", "--seed", "42", "--use_cpu", "--dataloader_pin_memory", "False",
    ]
    model_args, data_args, training_args = parser.parse_args_into_dataclasses(argv)
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s",
                        datefmt="%m/%d/%Y %H:%M:%S", handlers=[logging.StreamHandler(sys.stdout)], level=logging.INFO)
    transformers.utils.logging.set_verbosity_info()
    set_seed(training_args.seed)
    logger.info("device: %s, distributed training: %s", training_args.device, training_args.parallel_mode)

    raw_train = build_examples(data_args.max_train_samples, 1)
    raw_eval = build_examples(data_args.max_eval_samples, 2)
    tokenizer = build_tokenizer()

    def preprocess(batch):
        return tokenizer(batch["text"], truncation=True, max_length=data_args.max_seq_length)

    train_ds = raw_train.map(preprocess, batched=True, remove_columns=["text"], desc="Running tokenizer on train")
    eval_ds = raw_eval.map(preprocess, batched=True, remove_columns=["text"], desc="Running tokenizer on eval")
    logger.info("Sample 0 of the training set: %s.", train_ds[0])

    config = BertConfig(vocab_size=len(tokenizer), hidden_size=model_args.hidden_size,
                        num_hidden_layers=model_args.num_hidden_layers,
                        num_attention_heads=model_args.num_attention_heads, intermediate_size=64,
                        max_position_embeddings=64, num_labels=2, pad_token_id=0)
    model = BertForSequenceClassification(config)
    trainer = Trainer(model=model, args=training_args, train_dataset=train_ds, eval_dataset=eval_ds,
                      processing_class=tokenizer, data_collator=DataCollatorWithPadding(tokenizer),
                      compute_metrics=compute_metrics)
    if training_args.do_train:
        result = trainer.train()
        metrics = result.metrics
        metrics["train_samples"] = len(train_ds)
        trainer.save_model()
        trainer.log_metrics("train", metrics)
        trainer.save_metrics("train", metrics)
        trainer.save_state()
    if training_args.do_eval:
        logger.info("*** Evaluate ***")
        metrics = trainer.evaluate()
        metrics["eval_samples"] = len(eval_ds)
        trainer.log_metrics("eval", metrics)
        trainer.save_metrics("eval", metrics)
    logits = trainer.predict(eval_ds, metric_key_prefix="predict").predictions
    with open(os.path.join(training_args.output_dir, "predict_results.txt"), "w") as f:
        f.write("index\tprediction\tscore\n")
        for i, row in enumerate(logits):
            f.write(f"{i}\t{int(row.argmax())}\t{float(torch.softmax(torch.tensor(row), 0)[1]):.6f}\n")


if __name__ == "__main__":
    main()
