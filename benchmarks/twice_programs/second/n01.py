# psmpy#18: the matching is seeded, a sample call in the user's own code is not
from lab.frame import patients
from lab.log import Run

class Matcher:
    def __init__(self, table, seed):
        self.table, self.seed = table, seed

    def match(self):
        treated = self.table.sample(30, random_state=self.seed)
        rest = self.table.drop(treated.index)
        control = rest.sample(frac=0.4)  # cause
        return float(treated["out"].mean() - control["out"].mean())

run = Run("matching")
effect = Matcher(patients(), 7).match()
run.step(1, effect=effect)
print("effect", effect)
