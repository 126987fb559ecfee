"""Gradient boosting comparison on a tabular churn set.

Modelled on dmlc/xgboost demo/guide-python (sklearn_examples.py, callbacks.py, evals_result.py) and
catboost/tutorials: xgb.train with verbose_eval and a custom TrainingCallback timing rounds, CatBoost with
its catboost_info/ folder (time_left.tsv, catboost_training.json with passed_time), an ensemble, a model card.
"""
import json
import os
import platform
import sys
import time
from datetime import datetime, timezone

import catboost
import numpy as np
import pandas as pd
import xgboost as xgb
from catboost import CatBoostClassifier, Pool
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

SEED = 2024


def load_churn(n=12000):
    rng = np.random.default_rng(SEED)
    df = pd.DataFrame({
        'tenure': rng.integers(0, 72, n), 'monthly': rng.gamma(6, 11, n).round(2), 'calls': rng.poisson(2, n),
        'contract': rng.choice(['month', 'year', 'two-year'], n, p=[.55, .25, .2]),
        'internet': rng.choice(['dsl', 'fiber', 'none'], n), 'payment': rng.choice(['card', 'check', 'bank', 'mail'], n),
        'senior': rng.integers(0, 2, n)})
    z = (-1.2 - 0.035 * df.tenure + 0.012 * df.monthly + 0.25 * df.calls + df.contract.map({'month': .9, 'year': 0, 'two-year': -.8})
         + df.internet.map({'dsl': 0, 'fiber': .5, 'none': -.4}) + 0.2 * df.senior * (df.payment == 'check'))
    df['churn'] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    df.loc[rng.random(n) < 0.03, 'monthly'] = np.nan
    return df


class TimingCallback(xgb.callback.TrainingCallback):
    def __init__(self):
        self.rounds = []

    def before_iteration(self, model, epoch, evals_log):
        self.t = time.perf_counter()
        return False

    def after_iteration(self, model, epoch, evals_log):
        self.rounds.append(time.perf_counter() - self.t)
        return False


def scores(y, p):
    return {'auc': float(roc_auc_score(y, p)), 'logloss': float(log_loss(y, p)), 'ap': float(average_precision_score(y, p))}


def main():
    started = datetime.now(timezone.utc)
    print(f'[{started:%Y-%m-%d %H:%M:%S}] python {platform.python_version()} | xgboost {xgb.__version__} | catboost {catboost.__version__} | host {platform.node()}')
    os.makedirs('models', exist_ok=True)
    df = load_churn()
    df.to_csv('churn.csv', index=False)
    cats = ['contract', 'internet', 'payment']
    train, test = train_test_split(df, test_size=0.25, random_state=SEED, stratify=df.churn)
    train, valid = train_test_split(train, test_size=0.2, random_state=SEED, stratify=train.churn)
    print(f'train {train.shape} valid {valid.shape} test {test.shape} churn rate {df.churn.mean():.4f}')
    res, times = {}, {}

    enc = lambda d: pd.get_dummies(d.drop(columns='churn'), columns=cats, dtype=float)
    dtrain, dvalid, dtest = (xgb.DMatrix(enc(d), label=d.churn) for d in (train, valid, test))
    evals_result, timing = {}, TimingCallback()
    t0 = time.perf_counter()
    bst = xgb.train({'objective': 'binary:logistic', 'eval_metric': ['logloss', 'auc'], 'eta': 0.04, 'max_depth': 4, 'subsample': 0.8,
                     'colsample_bytree': 0.8, 'seed': SEED, 'tree_method': 'hist', 'nthread': 1}, dtrain, 300, evals=[(dtrain, 'train'), (dvalid, 'valid')],
                    early_stopping_rounds=30, verbose_eval=20, evals_result=evals_result, callbacks=[timing])
    times['xgboost_fit'] = time.perf_counter() - t0
    print(f'xgboost: {bst.best_iteration + 1} rounds, {times["xgboost_fit"]:.2f}s, {1000 * np.median(timing.rounds):.2f} ms/round')
    t0 = time.perf_counter()
    px = bst.predict(dtest, iteration_range=(0, bst.best_iteration + 1))
    times['xgboost_predict'] = time.perf_counter() - t0
    res['xgboost'] = scores(test.churn, px)
    bst.save_model('models/xgb.json')
    pd.DataFrame({f'{s}_{m}': v for s, d in evals_result.items() for m, v in d.items()}).to_csv('xgb_history.csv', index_label='round')

    ctr, cva, cte = (Pool(d.drop(columns='churn'), d.churn, cat_features=cats) for d in (train, valid, test))
    t0 = time.perf_counter()
    cb = CatBoostClassifier(iterations=400, learning_rate=0.05, depth=4, random_seed=SEED, eval_metric='AUC', thread_count=1, od_type='Iter', od_wait=40)
    cb.fit(ctr, eval_set=cva, verbose=50)
    times['catboost_fit'] = time.perf_counter() - t0
    pc = cb.predict_proba(cte)[:, 1]
    res['catboost'] = scores(test.churn, pc)
    res['blend'] = scores(test.churn, (px + pc) / 2)

    imp = pd.DataFrame({'feature': enc(train).columns}).set_index('feature')
    imp['xgb_gain'] = pd.Series(bst.get_score(importance_type='gain'))
    imp.fillna(0).sort_values('xgb_gain', ascending=False).to_csv('importance_xgb.csv')
    pd.Series(cb.get_feature_importance(ctr), index=cb.feature_names_).sort_values(ascending=False).to_csv('importance_cat.csv', header=['importance'])
    pd.DataFrame({'y': test.churn.values, 'xgb': px, 'cat': pc}).to_parquet('test_scores.parquet', index=False)

    table = pd.DataFrame(res).T
    table['fit_s'] = [times['xgboost_fit'], times['catboost_fit'], times['xgboost_fit'] + times['catboost_fit']]
    print(table.to_string(float_format=lambda v: f'{v:.6f}'))
    table.to_csv('leaderboard.csv', index_label='model')
    with open('model_card.md', 'w') as f:
        f.write(f'# Churn model\n\nTrained: {started.isoformat()}  \nMachine: {platform.platform()} ({os.cpu_count()} cpus)  \nPython: {sys.version.split()[0]}\n\n'
                f'| model | AUC | logloss | fit time |\n|---|---|---|---|\n')
        for name, r in table.iterrows():
            f.write(f'| {name} | {r.auc:.5f} | {r.logloss:.5f} | {r.fit_s:.2f} s |\n')
    json.dump({'metrics': res, 'timings': times, 'seed': SEED, 'best_iteration': bst.best_iteration, 'trees_catboost': cb.tree_count_}, open('metrics.json', 'w'), indent=2)
    print(f'Finished in {datetime.now(timezone.utc) - started}')


if __name__ == '__main__':
    main()
