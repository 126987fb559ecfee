#!/usr/bin/env python
# coding: utf-8
"""Kaggle notebook exported with nbconvert.

Modelled on the public "LightGBM with simple features" (Home Credit) and "reduce_mem_usage" kernels:
timer context manager, memory-usage prints, per-fold out-of-fold AUC, feature importance plot,
submission.csv, psutil memory in GB, dated OOF file name.
"""
# In[1]:
import gc
import os
import time
import warnings
from contextlib import contextmanager
from datetime import datetime

import lightgbm as lgb
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import psutil
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

warnings.simplefilter(action='ignore', category=FutureWarning)
SEED = 1001
np.random.seed(SEED)
notebookstart = time.time()
print(datetime.now().strftime('%Y-%m-%d %H:%M:%S'), '- notebook start, pid', os.getpid())


# In[2]:
@contextmanager
def timer(title):
    t0 = time.time()
    yield
    mem = psutil.Process(os.getpid()).memory_info().rss / 2. ** 30
    print('{} - done in {:.1f}s, memory: {:.3f} GB, available {:.1f} GB'.format(title, time.time() - t0, mem, psutil.virtual_memory().available / 2. ** 30))


def reduce_mem_usage(df):
    start_mem = df.memory_usage().sum() / 1024 ** 2
    print('Memory usage of dataframe is {:.2f} MB'.format(start_mem))
    for col in df.select_dtypes('number').columns:
        c_min, c_max = df[col].min(), df[col].max()
        if df[col].dtype.kind == 'i':
            for t in (np.int8, np.int16, np.int32):
                if c_min > np.iinfo(t).min and c_max < np.iinfo(t).max:
                    df[col] = df[col].astype(t)
                    break
        else:
            df[col] = df[col].astype(np.float32)
    end_mem = df.memory_usage().sum() / 1024 ** 2
    print('Memory usage after optimization is: {:.2f} MB'.format(end_mem))
    print('Decreased by {:.1f}%'.format(100 * (start_mem - end_mem) / start_mem))
    return df


# In[3]: make the input files (the competition data cannot be shipped)
def make_input():
    os.makedirs('input', exist_ok=True)
    rng = np.random.RandomState(SEED)
    n = 6000
    app = pd.DataFrame({'SK_ID_CURR': np.arange(100001, 100001 + n), 'AMT_INCOME_TOTAL': rng.lognormal(11.8, .5, n).round(0),
                        'AMT_CREDIT': rng.lognormal(13, .6, n).round(1), 'DAYS_BIRTH': -rng.randint(7500, 25000, n),
                        'DAYS_EMPLOYED': -rng.randint(0, 8000, n), 'CNT_CHILDREN': rng.poisson(.5, n),
                        'NAME_CONTRACT_TYPE': rng.choice(['Cash loans', 'Revolving loans'], n, p=[.9, .1]),
                        'EXT_SOURCE_2': rng.beta(4, 3, n), 'EXT_SOURCE_3': np.where(rng.rand(n) < .2, np.nan, rng.beta(4, 3, n))})
    app['AMT_ANNUITY'] = (app.AMT_CREDIT / rng.uniform(10, 40, n)).round(1)
    app.loc[rng.rand(n) < .15, 'DAYS_EMPLOYED'] = 365243
    bureau = pd.DataFrame({'SK_ID_CURR': rng.choice(app.SK_ID_CURR, 20000), 'DAYS_CREDIT': -rng.randint(0, 2900, 20000),
                           'AMT_CREDIT_SUM_DEBT': rng.lognormal(9, 2, 20000), 'CREDIT_ACTIVE': rng.choice(['Active', 'Closed'], 20000)})
    load = bureau[bureau.CREDIT_ACTIVE == 'Active'].groupby('SK_ID_CURR').AMT_CREDIT_SUM_DEBT.sum().reindex(app.SK_ID_CURR).fillna(0).values
    z = -1.4 - 3 * (app.EXT_SOURCE_2 - .5) - 2 * (app.EXT_SOURCE_3.fillna(.5) - .5) + .25 * np.log1p(load) / 5 + 6 * (app.AMT_ANNUITY / app.AMT_INCOME_TOTAL - .2)
    app['TARGET'] = (rng.rand(n) < 1 / (1 + np.exp(-z))).astype(int)
    app[:4500].to_csv('input/application_train.csv', index=False)
    app[4500:].drop(columns='TARGET').to_csv('input/application_test.csv', index=False)
    bureau.to_csv('input/bureau.csv', index=False)


with timer('Make input'):
    make_input()

# In[4]:
with timer('Process application'):
    df = pd.read_csv('input/application_train.csv')
    test_df = pd.read_csv('input/application_test.csv')
    print('Train samples: {}, test samples: {}'.format(len(df), len(test_df)))
    df = pd.concat([df, test_df]).reset_index(drop=True)
    df['NAME_CONTRACT_TYPE'], uniques = pd.factorize(df['NAME_CONTRACT_TYPE'])
    df['DAYS_EMPLOYED'] = df['DAYS_EMPLOYED'].replace(365243, np.nan)
    df['DAYS_EMPLOYED_PERC'] = df['DAYS_EMPLOYED'] / df['DAYS_BIRTH']
    df['ANNUITY_INCOME_PERC'] = df['AMT_ANNUITY'] / df['AMT_INCOME_TOTAL']
    df['PAYMENT_RATE'] = df['AMT_ANNUITY'] / df['AMT_CREDIT']
    df = reduce_mem_usage(df)

# In[5]:
with timer('Process bureau'):
    b = pd.read_csv('input/bureau.csv')
    agg = b.groupby('SK_ID_CURR').agg({'DAYS_CREDIT': ['min', 'max', 'mean'], 'AMT_CREDIT_SUM_DEBT': ['max', 'mean', 'sum']})
    agg.columns = ['BURO_' + a + '_' + f.upper() for a, f in agg.columns]
    act = b[b.CREDIT_ACTIVE == 'Active'].groupby('SK_ID_CURR').AMT_CREDIT_SUM_DEBT.agg(['sum', 'size']).add_prefix('ACTIVE_')
    print('Bureau df shape:', agg.shape)
    df = df.join(agg, on='SK_ID_CURR').join(act, on='SK_ID_CURR')
    del b, agg, act
    gc.collect()

# In[6]:
train_df, test_df = df[df['TARGET'].notnull()], df[df['TARGET'].isnull()].copy()
feats = [f for f in df.columns if f not in ('TARGET', 'SK_ID_CURR')]
oof, sub = np.zeros(len(train_df)), np.zeros(len(test_df))
imp = []
with timer('Run LightGBM with kfold'):
    print('Starting LightGBM. Train shape: {}, test shape: {}'.format(train_df.shape, test_df.shape))
    for n_fold, (tr, va) in enumerate(StratifiedKFold(4, shuffle=True, random_state=SEED).split(train_df, train_df['TARGET'])):
        t0 = time.time()
        clf = lgb.LGBMClassifier(n_estimators=400, learning_rate=0.04, num_leaves=20, colsample_bytree=0.8, subsample=0.85, subsample_freq=1,
                                 max_depth=6, reg_alpha=0.04, reg_lambda=0.07, random_state=SEED, verbose=-1, n_jobs=1, force_row_wise=True)
        clf.fit(train_df[feats].iloc[tr], train_df['TARGET'].iloc[tr], eval_set=[(train_df[feats].iloc[va], train_df['TARGET'].iloc[va])],
                eval_metric='auc', callbacks=[lgb.early_stopping(50), lgb.log_evaluation(100)])
        oof[va] = clf.predict_proba(train_df[feats].iloc[va])[:, 1]
        sub += clf.predict_proba(test_df[feats])[:, 1] / 4
        imp.append(pd.DataFrame({'feature': feats, 'importance': clf.feature_importances_, 'fold': n_fold + 1}))
        print('Fold %2d AUC : %.6f  [%s, %.1fs]' % (n_fold + 1, roc_auc_score(train_df['TARGET'].iloc[va], oof[va]), time.strftime('%H:%M:%S'), time.time() - t0))
    score = roc_auc_score(train_df['TARGET'], oof)
    print('Full AUC score %.6f' % score)

# In[7]:
with timer('Write output'):
    imp = pd.concat(imp)
    top = imp.groupby('feature')['importance'].mean().sort_values(ascending=False)
    plt.figure(figsize=(8, 6))
    top.iloc[::-1].plot.barh(title='LightGBM Features (avg over folds)')
    plt.tight_layout()
    plt.savefig('lgbm_importances01.png')
    plt.savefig('lgbm_importances01.pdf')
    test_df['TARGET'] = sub
    test_df[['SK_ID_CURR', 'TARGET']].to_csv('submission.csv', index=False)
    pd.DataFrame({'SK_ID_CURR': train_df.SK_ID_CURR, 'oof': oof}).to_csv('oof_{:%Y%m%d_%H%M%S}_{:.5f}.csv'.format(datetime.now(), score), index=False)
    print(top.head(8))
print('Notebook Runtime: %0.2f Minutes' % ((time.time() - notebookstart) / 60))
