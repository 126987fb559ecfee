"""Few-shot evaluation harness.

Modelled on EleutherAI/lm-evaluation-harness (lm_eval/evaluator.py, loggers/evaluation_tracker.py): tasks with
multiple_choice and generate_until, acc / acc_norm / exact_match with bootstrap stderr, results_<date>.json with
start_time, end_time, total_evaluation_time_seconds, pretty_env_info and samples_<task>_<date>.jsonl, Markdown table.
The "model" is a byte trigram LM estimated on a synthetic corpus.
"""
import hashlib
import json
import logging
import math
import os
import platform
import random
import sys
import time
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np
from tqdm import tqdm

logging.basicConfig(format='%(asctime)s %(levelname)-8s [%(filename)s:%(lineno)d] %(message)s', datefmt='%Y-%m-%d:%H:%M:%S', level=logging.INFO)
eval_logger = logging.getLogger('lm_eval')
START = time.perf_counter()
COLORS = {'sky': 'blue', 'grass': 'green', 'snow': 'white', 'coal': 'black', 'lemon': 'yellow', 'blood': 'red'}


class TrigramLM:
    def __init__(self, order=5):
        self.order, self.counts, self.cache = order, [defaultdict(Counter) for _ in range(order + 1)], {}

    def fit(self, text):
        for n in range(self.order + 1):
            for i in range(n, len(text)):
                self.counts[n][text[i - n:i]][text[i]] += 1
        return self

    def prob(self, ctx, ch):
        key = (ctx[-self.order:], ch)
        if key not in self.cache:
            p = 1 / 96
            for n in range(self.order + 1):
                c = self.counts[n].get(ctx[len(ctx) - n:] if n else '')
                if c:
                    tot = sum(c.values())
                    lam = tot / (tot + 2.0)
                    p = lam * c[ch] / tot + (1 - lam) * p
            self.cache[key] = p
        return self.cache[key]

    def loglikelihood(self, ctx, cont):
        ll, greedy, cur = 0.0, True, ctx
        for ch in cont:
            ll += math.log(self.prob(cur, ch))
            greedy &= self.argmax(cur) == ch
            cur += ch
        return ll, greedy

    def argmax(self, ctx):
        for n in range(self.order, -1, -1):
            c = self.counts[n].get(ctx[len(ctx) - n:] if n else '')
            if c:
                return max(sorted(c), key=c.get)
        return ' '

    def generate_until(self, ctx, until, max_gen_toks=12):
        out = ''
        while len(out) < max_gen_toks and not out.endswith(until):
            out += self.argmax(ctx + out)
        return out.removesuffix(until)


def corpus(rng):
    lines = []
    for _ in range(20000):
        r = rng.random()
        if r < .5:
            k = rng.choice(sorted(COLORS))
            lines.append(f'Question: What is the color of {k}? Answer: {COLORS[k] if rng.random() < .8 else rng.choice(sorted(COLORS.values()))}.')
        else:
            a, b = rng.randint(1, 9), rng.randint(1, 9)
            lines.append(f'Q: {a}+{b}= A: {a + b}.')
    return '\n'.join(lines)


def make_task(name, rng, n):
    docs = []
    for i in range(n):
        if name == 'colors_mc':
            k = rng.choice(sorted(COLORS))
            ch = rng.sample(sorted(set(COLORS.values()) - {COLORS[k]}), 3) + [COLORS[k]]
            rng.shuffle(ch)
            docs.append({'q': f'Question: What is the color of {k}? Answer:', 'choices': ch, 'gold': ch.index(COLORS[k])})
        else:
            a, b = rng.randint(1, 9), rng.randint(1, 9)
            docs.append({'q': f'Q: {a}+{b}= A:', 'target': str(a + b)})
    return docs


def fewshot_context(docs, i, k, rng):
    pool = [d for j, d in enumerate(docs) if j != i]
    shots = rng.sample(pool, k)
    return '\n'.join(f"{d['q']} {d['choices'][d['gold']] if 'choices' in d else d['target']}." for d in shots) + '\n' + docs[i]['q']


def bootstrap_stderr(xs, iters=10000):
    rnd = np.random.default_rng(42)
    xs = np.array(xs, dtype=float)
    return float(np.std([xs[rnd.integers(0, len(xs), len(xs))].mean() for _ in range(iters)], ddof=1))


def get_env_info():
    cpu = next((l.split(':')[1].strip() for l in open('/proc/cpuinfo') if l.startswith('model name')), platform.processor())
    mhz = [l.split(':')[1].strip() for l in open('/proc/cpuinfo') if l.startswith('cpu MHz')]
    return '\n'.join([f'OS: {platform.platform()}', f'Python version: {sys.version.split()[0]}', f'CPU: {cpu}', f'CPU MHz: {" ".join(mhz)}', f'Load average: {os.getloadavg()[0]:.2f}',
                      f'numpy=={np.__version__}'])


def simple_evaluate(lm, tasks, num_fewshot, seed):
    results, samples = {}, {}
    for name, n in tasks:
        rng = random.Random(seed)
        docs = make_task(name, rng, n)
        eval_logger.info(f'Building contexts for {name} on rank 0...')
        reqs = [(i, d, fewshot_context(docs, i, num_fewshot, rng)) for i, d in enumerate(tqdm(docs))]
        eval_logger.info('Running %s requests', 'loglikelihood' if 'choices' in docs[0] else 'generate_until')
        out, t0 = [], time.perf_counter()
        for i, d, ctx in tqdm(reqs, desc='Running requests'):
            s = {'doc_id': i, 'doc': d, 'arguments': ctx, 'doc_hash': hashlib.sha256(json.dumps(d).encode()).hexdigest(), 'prompt_hash': hashlib.sha256(ctx.encode()).hexdigest()}
            if 'choices' in d:
                lls = [lm.loglikelihood(ctx, ' ' + c + '.') for c in d['choices']]
                s['resps'] = lls
                s['acc'] = float(np.argmax([l for l, _ in lls]) == d['gold'])
                s['acc_norm'] = float(np.argmax([l / len(c) for (l, _), c in zip(lls, d['choices'])]) == d['gold'])
            else:
                g = lm.generate_until(ctx, '.')
                s['resps'], s['exact_match'] = g, float(g.strip() == d['target'])
            out.append(s)
        dt = time.perf_counter() - t0
        eval_logger.info(f'{name}: {len(reqs)} requests in {dt:.2f}s ({len(reqs) / dt:.1f} req/s)')
        metrics = [m for m in ('acc', 'acc_norm', 'exact_match') if m in out[0]]
        results[name] = {'alias': name}
        for m in metrics:
            vals = [s[m] for s in out]
            results[name][f'{m},none'], results[name][f'{m}_stderr,none'] = float(np.mean(vals)), bootstrap_stderr(vals)
        samples[name] = out
    return results, samples


def make_table(results, n):
    rows = ['|  Tasks  |Version|n-shot|  Metric   |Value |   |Stderr|', '|---------|------:|-----:|-----------|-----:|---|-----:|']
    for t, r in results.items():
        for m in [k for k in r if k.endswith(',none') and 'stderr' not in k]:
            b = m.split(',')[0]
            rows.append(f"|{t:<9}|      1|{n:>6}|{b:<11}|{r[m]:.4f}|±  |{r[b + '_stderr,none']:.4f}|")
    return '\n'.join(rows)


def main():
    eval_logger.info('Setting random seed to 0 | Setting numpy seed to 1234')
    random.seed(0)
    np.random.seed(1234)
    lm = TrigramLM().fit(corpus(random.Random(0)))
    results, samples = simple_evaluate(lm, [('colors_mc', 3000), ('arith_gen', 3000)], num_fewshot=3, seed=1234)
    end = time.perf_counter()
    date_id = datetime.now().isoformat().replace(':', '-')
    path = Path('output') / 'trigram__5gram'
    path.mkdir(parents=True, exist_ok=True)
    task_hashes = {t: hashlib.sha256(''.join(s['doc_hash'] + s['prompt_hash'] for s in ss).encode()).hexdigest() for t, ss in samples.items()}
    dump = {'results': results, 'configs': {t: {'task': t, 'num_fewshot': 3} for t in results}, 'n-samples': {t: len(s) for t, s in samples.items()},
            'config': {'model': 'trigram', 'bootstrap_iters': 10000, 'random_seed': 0, 'numpy_seed': 1234}, 'git_hash': None, 'date': time.time(),
            'pretty_env_info': get_env_info(), 'task_hashes': task_hashes, 'model_name': 'trigram/5gram', 'start_time': START, 'end_time': end,
            'total_evaluation_time_seconds': str(end - START)}
    (path / f'results_{date_id}.json').write_text(json.dumps(dump, indent=2, ensure_ascii=False))
    for t, ss in samples.items():
        eval_logger.info(f'Saving per-sample results for: {t}')
        with open(path / f'samples_{t}_{date_id}.jsonl', 'w') as f:
            f.writelines(json.dumps(s) + '\n' for s in ss)
    print('trigram (pretrained=trigram/5gram), gen_kwargs: (None), limit: None, num_fewshot: 3, batch_size: 1')
    print(make_table(results, 3))


if __name__ == '__main__':
    main()
