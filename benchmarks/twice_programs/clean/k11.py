"""Hyperparameter study with a SQLite storage.

Modelled on optuna/optuna-examples lightgbm/lightgbm_simple.py, sklearn and
simple_pruning.py: TPESampler(seed), MedianPruner, RDB storage, optuna's own log lines
("[I 2024-..] Trial 3 finished with value ..."), study.trials_dataframe() to CSV with
datetime_start/complete and duration, user attrs with fit seconds, best params JSON.
"""
import json
import logging
import sys
import time

import lightgbm as lgb
import numpy as np
import optuna
import sklearn.datasets
from optuna.pruners import MedianPruner
from optuna.samplers import TPESampler
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

STUDY = 'lgbm-breast-cancer'
data, target = sklearn.datasets.load_breast_cancer(return_X_y=True)
noise = np.random.RandomState(0)
data = data + noise.normal(scale=data.std(0) * 0.9, size=data.shape)
train_x, valid_x, train_y, valid_y = train_test_split(data, target, test_size=0.25, random_state=0, stratify=target)


def objective(trial):
    param = {
        'objective': 'binary', 'metric': 'auc', 'verbosity': -1, 'seed': 0, 'deterministic': True, 'force_row_wise': True, 'num_threads': 1,
        'boosting_type': trial.suggest_categorical('boosting_type', ['gbdt', 'dart']),
        'lambda_l1': trial.suggest_float('lambda_l1', 1e-8, 10.0, log=True),
        'lambda_l2': trial.suggest_float('lambda_l2', 1e-8, 10.0, log=True),
        'num_leaves': trial.suggest_int('num_leaves', 4, 48),
        'feature_fraction': trial.suggest_float('feature_fraction', 0.4, 1.0),
        'bagging_fraction': trial.suggest_float('bagging_fraction', 0.4, 1.0),
        'bagging_freq': trial.suggest_int('bagging_freq', 1, 7),
        'min_child_samples': trial.suggest_int('min_child_samples', 5, 60),
    }
    t0 = time.perf_counter()
    scores = []
    for i, (tr, va) in enumerate(StratifiedKFold(3, shuffle=True, random_state=1).split(train_x, train_y)):
        gbm = lgb.train(param, lgb.Dataset(train_x[tr], label=train_y[tr]), num_boost_round=40)
        scores.append(roc_auc_score(train_y[va], gbm.predict(train_x[va])))
        trial.report(float(np.mean(scores)), i)
        if trial.should_prune():
            raise optuna.TrialPruned()
    trial.set_user_attr('fit_seconds', time.perf_counter() - t0)
    trial.set_user_attr('fold_auc', scores)
    return float(np.mean(scores))


def sgd_objective(trial):
    """simple_pruning.py of the examples: partial_fit with intermediate values."""
    clf = SGDClassifier(alpha=trial.suggest_float('alpha', 1e-5, 1e-1, log=True), loss='log_loss',
                        eta0=trial.suggest_float('eta0', 1e-4, 1e-1, log=True), learning_rate='invscaling', random_state=0)
    sc = StandardScaler().fit(train_x)
    a, b = sc.transform(train_x), sc.transform(valid_x)
    for step in range(30):
        clf.partial_fit(a, train_y, classes=[0, 1])
        loss = log_loss(valid_y, clf.predict_proba(b))
        trial.report(loss, step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return loss


def summarize(study):
    pruned = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.PRUNED])
    complete = study.get_trials(deepcopy=False, states=[optuna.trial.TrialState.COMPLETE])
    print('Study statistics: ')
    print('  Number of finished trials: ', len(study.trials))
    print('  Number of pruned trials: ', len(pruned))
    print('  Number of complete trials: ', len(complete))
    trial = study.best_trial
    print('Best trial:')
    print('  Value: {}'.format(trial.value))
    print('  Params: ')
    for key, value in trial.params.items():
        print('    {}: {}'.format(key, value))
    total = sum((t.duration.total_seconds() for t in complete), 0.0)
    print('  Duration of best: {}, mean {:.3f}s'.format(trial.duration, total / len(complete)))


if __name__ == '__main__':
    optuna.logging.get_logger('optuna').addHandler(logging.StreamHandler(sys.stdout))
    storage = 'sqlite:///study.db'
    study = optuna.create_study(study_name=STUDY, storage=storage, direction='maximize', sampler=TPESampler(seed=10, n_startup_trials=8),
                                pruner=MedianPruner(n_startup_trials=5, n_warmup_steps=1), load_if_exists=True)
    t0 = time.time()
    study.optimize(objective, n_trials=24, gc_after_trial=False)
    summarize(study)
    print(f'optimize() took {time.time() - t0:.1f}s')
    study.trials_dataframe().to_csv('trials.csv', index=False)

    study2 = optuna.create_study(direction='minimize', sampler=TPESampler(seed=11), pruner=MedianPruner())
    study2.optimize(sgd_objective, n_trials=20)
    summarize(study2)
    study2.trials_dataframe(attrs=('number', 'value', 'duration', 'params', 'state')).to_csv('trials_sgd.csv', index=False)

    best = {k: v for k, v in study.best_params.items()}
    gbm = lgb.train({**best, 'objective': 'binary', 'verbosity': -1, 'seed': 0, 'force_row_wise': True, 'num_threads': 1}, lgb.Dataset(train_x, label=train_y), num_boost_round=60)
    gbm.save_model('best_lgbm.txt')
    auc = roc_auc_score(valid_y, gbm.predict(valid_x))
    with open('best_params.json', 'w') as f:
        json.dump({'study': STUDY, 'params': best, 'cv_auc': study.best_value, 'holdout_auc': auc, 'n_trials': len(study.trials),
                   'wall_time_s': round(time.time() - t0, 3), 'created': time.ctime()}, f, indent=2)
    print(f'holdout auc: {auc:.6f}')
