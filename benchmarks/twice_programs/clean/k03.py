"""Text classification fine-tuning with the HF Trainer.

Modelled on huggingface/transformers examples/pytorch/text-classification/run_glue.py:
TrainingArguments, compute_metrics, trainer.log_metrics/save_metrics/save_state,
all_results.json with train_runtime / samples_per_second, predict_results.txt.
The model is a tiny BERT made from a config, the corpus is synthetic reviews.
"""
import logging
import os
import sys

os.environ.setdefault('HF_HUB_OFFLINE', '1')
import datasets
import numpy as np
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

logger = logging.getLogger(__name__)
POS = 'good great lovely excellent superb fresh brilliant happy'.split()
NEG = 'bad awful dull terrible boring weak stale sad'.split()
NEUTRAL = 'the film was a plot with an actor and some scene in which music plays on through of this that it is'.split()


def build_raw(n, seed):
    rng = np.random.RandomState(seed)
    rows = {'sentence': [], 'label': [], 'idx': list(range(n))}
    for _ in range(n):
        label = int(rng.randint(2))
        words = list(rng.choice(NEUTRAL, size=rng.randint(6, 14)))
        for w in rng.choice(POS if label else NEG, size=rng.randint(1, 3)):
            words.insert(rng.randint(len(words)), w)
        if rng.rand() < 0.2:
            words.insert(0, rng.choice(NEG if label else POS))
        rows['sentence'].append(' '.join(words))
        rows['label'].append(label)
    return datasets.Dataset.from_dict(rows)


def main():
    training_args = TrainingArguments(
        output_dir='sst2-out', num_train_epochs=3, per_device_train_batch_size=16, per_device_eval_batch_size=64,
        learning_rate=1e-3, warmup_steps=10, weight_decay=0.01, logging_steps=20, eval_strategy='epoch',
        save_strategy='epoch', save_total_limit=1, load_best_model_at_end=True, metric_for_best_model='accuracy',
        seed=42, data_seed=42, use_cpu=True, report_to=[], disable_tqdm=False)
    logging.basicConfig(format='%(asctime)s - %(levelname)s - %(name)s - %(message)s', datefmt='%m/%d/%Y %H:%M:%S',
                        handlers=[logging.StreamHandler(sys.stdout)])
    log_level = training_args.get_process_log_level()
    logger.setLevel(logging.INFO)
    datasets.utils.logging.set_verbosity(log_level)
    transformers.utils.logging.set_verbosity(log_level)
    logger.warning(f'Process rank: {training_args.local_rank}, device: {training_args.device}, n_gpu: {training_args.n_gpu}, '
                   f'16-bits training: {training_args.fp16}')
    set_seed(training_args.seed)

    raw = datasets.DatasetDict(train=build_raw(640, 1), validation=build_raw(200, 2), test=build_raw(100, 3))
    vocab = ['[PAD]', '[CLS]', '[SEP]', '[UNK]'] + sorted(set(POS + NEG + NEUTRAL))
    w2i = {w: i for i, w in enumerate(vocab)}

    def preprocess_function(examples):
        out = {'input_ids': [], 'attention_mask': []}
        for s in examples['sentence']:
            ids = [1] + [w2i.get(w, 3) for w in s.split()][:22] + [2]
            out['input_ids'].append(ids + [0] * (24 - len(ids)))
            out['attention_mask'].append([1] * len(ids) + [0] * (24 - len(ids)))
        return out

    raw = raw.map(preprocess_function, batched=True, desc='Running tokenizer on dataset')
    for index in (5, 111, 17):
        logger.info(f"Sample {index} of the training set: {raw['train'][index]}.")

    config = BertConfig(vocab_size=len(vocab), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=32, num_labels=2)
    model = BertForSequenceClassification(config)

    def compute_metrics(p):
        preds = np.argmax(p.predictions, axis=1)
        tp = int(((preds == 1) & (p.label_ids == 1)).sum())
        f1 = 2 * tp / max(1, int((preds == 1).sum() + (p.label_ids == 1).sum()))
        return {'accuracy': float((preds == p.label_ids).mean()), 'f1': f1}

    trainer = Trainer(model=model, args=training_args, train_dataset=raw['train'], eval_dataset=raw['validation'],
                      compute_metrics=compute_metrics)
    train_result = trainer.train()
    metrics = train_result.metrics
    metrics['train_samples'] = len(raw['train'])
    trainer.save_model()
    trainer.log_metrics('train', metrics)
    trainer.save_metrics('train', metrics)
    trainer.save_state()

    logger.info('*** Evaluate ***')
    metrics = trainer.evaluate()
    metrics['eval_samples'] = len(raw['validation'])
    trainer.log_metrics('eval', metrics)
    trainer.save_metrics('eval', metrics)

    logger.info('*** Predict ***')
    predictions = np.argmax(trainer.predict(raw['test'].remove_columns('label')).predictions, axis=1)
    with open(os.path.join(training_args.output_dir, 'predict_results.txt'), 'w') as writer:
        writer.write('index\tprediction\n')
        for index, item in enumerate(predictions):
            writer.write(f'{index}\t{["negative", "positive"][item]}\n')


if __name__ == '__main__':
    main()
