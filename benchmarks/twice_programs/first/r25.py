# RandomizedSearchCV without random_state
import json
from scipy.stats import loguniform
from sklearn.linear_model import Ridge
from sklearn.model_selection import RandomizedSearchCV
from proj.data import table
from proj.log import Run

class Search:
    def __init__(self, trials):
        self.trials = trials

    def fit(self, x, y):
        search = RandomizedSearchCV(Ridge(), {"alpha": loguniform(1e-3, 1e3)}, n_iter=self.trials, cv=3)
        return search.fit(x, y)  # cause

run = Run("ridge")
found = Search(6).fit(*table(90))
json.dump({"alpha": found.best_params_["alpha"], "score": found.best_score_}, open("best.json", "w"))
run.finish(score=found.best_score_)
