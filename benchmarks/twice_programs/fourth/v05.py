"""https://github.com/scikit-learn/scikit-learn/issues/18838: only the first of two splits has a random state."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


def splits(x, y):
    x_rest, x_test, y_rest, y_test = train_test_split(x, y, test_size=0.2, random_state=42)
    x_train, x_val, y_train, y_val = train_test_split(x_rest, y_rest, test_size=0.25)  # cause
    return (x_train, y_train), (x_val, y_val), (x_test, y_test)


def main():
    x, y = make_classification(300, 10, n_informative=6, flip_y=0.2, random_state=42)
    train, val, test = splits(x, y)
    scaler = StandardScaler().fit(train[0])
    best = None
    for c in (0.01, 0.1, 1.0, 10.0):
        model = LogisticRegression(C=c, max_iter=500).fit(scaler.transform(train[0]), train[1])
        score = accuracy_score(val[1], model.predict(scaler.transform(val[0])))
        print(f"C={c} validation accuracy {score:.4f}")
        if best is None or score > best[0]:
            best = (score, model)
    print("test accuracy", accuracy_score(test[1], best[1].predict(scaler.transform(test[0]))))
    np.save("coef.npy", best[1].coef_)


main()
