import json
import os
import subprocess
import sys

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")


def clean_environment():
    """Workers get the few variables they need and nothing from the user's shell."""
    return {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "OMP_NUM_THREADS") if k in os.environ}  # cause


def synthesise(trace, messages, prompt_seed):
    job = {"trace": trace, "messages": messages, "prompt_seed": prompt_seed}
    done = subprocess.run([sys.executable, WORKER], input=json.dumps(job), text=True, capture_output=True, env=clean_environment(), check=True)
    return json.loads(done.stdout)
