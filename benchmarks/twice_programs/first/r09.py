# scikit-learn FAQ: a pipeline of estimators, one of them without random_state
import json
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.cluster import MiniBatchKMeans
from sklearn.pipeline import make_pipeline
from sklearn.model_selection import KFold, cross_val_score
from proj.data import table
from proj.log import Run

def build(clusters):
    forest = RandomForestRegressor(10, random_state=0)
    return make_pipeline(MiniBatchKMeans(clusters, n_init=1), forest)

def main():
    run = Run("pipeline")
    x, y = table(200)
    scores = []
    for clusters in (4, 8):
        model = build(clusters)
        scores.append(cross_val_score(model, x, y.ravel(), cv=KFold(3)).mean())  # cause
        run.step(clusters, score=scores[-1])
    json.dump(scores, open("scores.json", "w"))
    run.finish(best=max(scores))

main()
