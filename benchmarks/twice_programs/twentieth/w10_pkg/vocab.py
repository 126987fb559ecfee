"""Token vocabulary of the timelines."""
TOKENS = (["PAD", "START", "END", "DEATH", "ADMIT", "DISCHARGE", "ICU"]
          + [f"LAB{q}" for q in range(5)] + [f"DRUG{k}" for k in range(6)]
          + [f"GAP{k}" for k in range(4)])
INDEX = {token: i for i, token in enumerate(TOKENS)}
CONTEXT = 28
