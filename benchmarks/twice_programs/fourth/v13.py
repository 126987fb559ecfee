"""https://github.com/thouska/spotpy/issues/165: a stochastic optimisation whose generator nobody seeds."""

import json

import numpy as np
from scipy.optimize import differential_evolution

RAIN = np.abs(np.sin(np.arange(120) * 0.37)) * 10


def model(parameters, rain):
    store, flow = 0.0, []
    for drop in rain:
        store += drop * parameters[0]
        out = store * parameters[1]
        store -= out
        flow.append(out)
    return np.array(flow)


OBSERVED = model((0.8, 0.12), RAIN) + 0.05 * np.cos(np.arange(120))


def error(parameters):
    return float(np.square(model(parameters, RAIN) - OBSERVED).mean())


def calibrate():
    return differential_evolution(error, [(0.1, 1.5), (0.01, 0.5)], maxiter=4, popsize=6, polish=False)  # cause


def main():
    result = calibrate()
    print("best", result.x.tolist(), "rmse", result.fun**0.5)
    with open("calibrated.json", "w") as out:
        json.dump({"x": result.x.tolist(), "fun": result.fun}, out)


main()
