"""Randomised + grid search over text pipelines.

Modelled on scikit-learn examples/model_selection/plot_grid_search_text_feature_extraction.py and
plot_randomized_search.py: "RandomizedSearchCV took %.2f seconds for %d candidates", report(cv_results_)
(mean_fit_time columns), "Done in %.3fs" prints; n_jobs=2, cv_results CSV, joblib-dumped cv_results_.
"""
import json
import logging
from pprint import pprint
from time import time

import joblib
import numpy as np
import pandas as pd
from scipy.stats import loguniform
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import classification_report, confusion_matrix
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold, train_test_split
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import Pipeline

logging.basicConfig(level=logging.INFO, format='%(asctime)s %(levelname)s %(message)s')
CATEGORIES = ['alt.atheism', 'comp.graphics', 'sci.space', 'rec.autos']


def fetch(n=700, seed=0):
    rng = np.random.RandomState(seed)
    common = [f'w{i}' for i in range(300)]
    topic = [[f'{c.split(".")[1]}{i}' for i in range(25)] for c in CATEGORIES]
    zipf = 1 / np.arange(1, 301)
    docs, y = [], rng.randint(len(CATEGORIES), size=n)
    for t in y:
        words = list(rng.choice(common, size=rng.randint(20, 60), p=zipf / zipf.sum()))
        other = rng.randint(len(CATEGORIES))
        words += list(rng.choice(topic[t], size=rng.randint(0, 4))) + list(rng.choice(topic[other], size=rng.randint(0, 3)))
        rng.shuffle(words)
        docs.append(' '.join(words))
    return docs, y


def report(results, n_top=3):
    for i in range(1, n_top + 1):
        for candidate in np.flatnonzero(results['rank_test_score'] == i)[:2]:
            print('Model with rank: {0}'.format(i))
            print('Mean validation score: {0:.3f} (std: {1:.3f})'.format(results['mean_test_score'][candidate], results['std_test_score'][candidate]))
            print('Mean fit time: {0:.4f}s, score time: {1:.4f}s'.format(results['mean_fit_time'][candidate], results['mean_score_time'][candidate]))
            print('Parameters: {0}'.format(results['params'][candidate]))
            print('')


def main():
    docs, y = fetch()
    X_train, X_test, y_train, y_test = train_test_split(docs, y, test_size=0.3, random_state=1, stratify=y)
    print(f'{len(X_train)} documents - {sum(len(d) for d in X_train) / 1e6:.2f}MB (training set)')
    cv = StratifiedKFold(4, shuffle=True, random_state=0)

    pipeline = Pipeline([('vect', TfidfVectorizer()), ('clf', ComplementNB())])
    grid = {'vect__max_df': (0.5, 1.0), 'vect__min_df': (1, 3), 'vect__norm': ('l1', 'l2'), 'clf__alpha': (0.01, 0.1, 1.0)}
    print('Performing grid search...')
    print('pipeline:', [name for name, _ in pipeline.steps])
    print('parameters:')
    pprint(grid)
    t0 = time()
    gs = GridSearchCV(pipeline, grid, n_jobs=2, verbose=1, cv=cv, return_train_score=True).fit(X_train, y_train)
    print(f'done in {time() - t0:.3f}s')
    print('Best score: %0.3f' % gs.best_score_)

    pipe2 = Pipeline([('vect', TfidfVectorizer(sublinear_tf=True)), ('clf', SGDClassifier(random_state=0, max_iter=40, tol=1e-3))])
    dist = {'clf__alpha': loguniform(1e-6, 1e-2), 'clf__penalty': ['l2', 'elasticnet'], 'clf__loss': ['hinge', 'log_loss', 'modified_huber'],
            'vect__min_df': [1, 2, 3]}
    start = time()
    rs = RandomizedSearchCV(pipe2, dist, n_iter=20, n_jobs=2, verbose=1, random_state=0, cv=cv).fit(X_train, y_train)
    print('RandomizedSearchCV took %.2f seconds for %d candidates parameter settings.' % (time() - start, 20))
    report(rs.cv_results_)

    frames = []
    for name, s in (('grid', gs), ('random', rs)):
        df = pd.DataFrame(s.cv_results_).drop(columns=['params']).sort_values(['rank_test_score', 'mean_test_score'], kind='stable')
        df.insert(0, 'search', name)
        df.to_csv(f'cv_results_{name}.csv', index=False)
        frames.append(df[['search', 'mean_fit_time', 'std_fit_time', 'mean_score_time', 'mean_test_score', 'std_test_score']])
        logging.info('%s: refit took %.3fs, best index %d', name, s.refit_time_, s.best_index_)
    summary = pd.concat(frames).groupby('search').agg({'mean_fit_time': 'mean', 'mean_score_time': 'mean', 'mean_test_score': ['max', 'mean']})
    print(summary.to_string(float_format=lambda v: f'{v:.5f}'))

    best = gs if gs.best_score_ >= rs.best_score_ else rs
    t0 = time()
    pred = best.predict(X_test)
    print(f'test time: {time() - t0:.3g}s')
    print(classification_report(y_test, pred, target_names=CATEGORIES, digits=4))
    print(confusion_matrix(y_test, pred))
    pd.DataFrame({'y': y_test, 'pred': pred}).to_csv('test_predictions.csv', index=False)
    joblib.dump(best.best_estimator_['clf'], 'best_clf.joblib')
    with open('vocabulary.json', 'w') as f:
        json.dump({k: int(v) for k, v in best.best_estimator_['vect'].vocabulary_.items()}, f, sort_keys=True)
    joblib.dump({'grid': gs.cv_results_, 'random': rs.cv_results_}, 'cv_results.joblib', compress=3)
    logging.info('saved best_clf.joblib, vocabulary.json and cv_results.joblib')


if __name__ == '__main__':
    main()
