"""Reading and writing of run parameters and structures."""
import json

DEFAULTS = {"gen_vel": False, "gen_temp": 1.0, "gen_seed": -1, "dt": 0.005, "nsteps": 100,
            "integrator": "md", "tau_t": 0.5, "ref_t": 1.0}


def read_params(path):
    """Parameters as 'name = value' lines; ';' starts a remark."""
    params = dict(DEFAULTS)
    with open(path) as handle:
        for line in handle:
            line = line.split(";")[0].strip()
            if not line:
                continue
            name, value = (part.strip() for part in line.split("="))
            if value in ("yes", "no"):
                params[name] = value == "yes"
            elif name == "integrator":
                params[name] = value
            else:
                params[name] = float(value) if "." in value else int(value)
    return params


def read_system(path):
    with open(path) as handle:
        return json.load(handle)


def write_system(path, system):
    with open(path, "w") as handle:
        json.dump(system, handle)
