# setfit#441: GroupBy.sample without random_state
from lab.frame import patients
from lab.log import Run

def few_shot(table, per_group):
    return table.groupby("group").sample(per_group)  # cause

run = Run("few-shot")
chosen = few_shot(patients(), 5)
chosen.to_csv("chosen.csv", index=False)
run.finish(mean=float(chosen["out"].mean()))
