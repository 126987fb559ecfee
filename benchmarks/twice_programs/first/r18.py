# a pipeline of processes: an earlier one is not seeded
import subprocess, sys
from pathlib import Path
here = Path(__file__).parent
for argv in (["prepare18.py", "train.csv"], ["train18.py", "train.csv"]):
    subprocess.run([sys.executable, str(here / argv[0]), *argv[1:]], check=True)
