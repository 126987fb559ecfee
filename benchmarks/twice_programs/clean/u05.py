"""Korteweg-de Vries / Burgers equation, pseudo-spectral, with analysis output.

Modelled on: DedalusProject/dedalus (examples/ivp_1d_kdv_burgers, core/evaluator.py H5FileHandler,
core/solvers.py log_stats): snapshots/snapshots_s1.h5 with scales/{sim_time,wall_time,world_time,
timestep,iteration,write_number}, log lines "Iteration=.., Time=.., dt=.." and run speeds. "Time" and
sim_time are model time; wall_time and world_time are clock readings.
"""
import logging
import pathlib
import sys
import time
import uuid

import h5py
import numpy as np

fmt = logging.Formatter("%(asctime)s %(name)s %(process)d/1 %(levelname)s :: %(message)s")
root = logging.getLogger()
root.setLevel(logging.INFO)
for h in (logging.StreamHandler(sys.stderr), logging.FileHandler("logs_dedalus.log")):
    h.setFormatter(fmt)
    root.addHandler(h)
logger = logging.getLogger("solvers")

# Parameters
Lx, Nx = 10.0, 512
a, b = 1e-4, 2e-4
timestep, stop_sim_time = 2e-3, 6.0


class FileHandler:
    def __init__(self, base, sim_dt, max_writes):
        self.base, self.sim_dt, self.max_writes = pathlib.Path(base), sim_dt, max_writes
        self.base.mkdir(exist_ok=True)
        self.set_num, self.total, self.file, self.next_time = 0, 0, None, 0.0

    def new_file(self, solver):
        if self.file:
            self.file.close()
        self.set_num += 1
        f = self.file = h5py.File(self.base / f"{self.base.name}_s{self.set_num}.h5", "w")
        f.attrs["set_number"] = self.set_num
        f.attrs["handler_name"] = self.base.name
        f.attrs["run_uuid"] = str(uuid.uuid4())
        f.attrs["created"] = time.strftime("%a %b %d %H:%M:%S %Y")
        s = f.create_group("scales")
        s["x"] = solver.x
        for name, dt in [("sim_time", "f8"), ("wall_time", "f8"), ("world_time", "f8"), ("timestep", "f8"),
                         ("iteration", "i8"), ("write_number", "i8")]:
            s.create_dataset(name, (0,), maxshape=(None,), dtype=dt)
        t = f.create_group("tasks")
        t.create_dataset("u", (0, Nx), maxshape=(None, Nx), dtype="f8", chunks=(1, Nx))
        for name in ("energy", "mass"):
            t.create_dataset(name, (0,), maxshape=(None,), dtype="f8")

    def process(self, solver, force=False):
        if not force and solver.sim_time < self.next_time - 1e-9:
            return
        self.next_time += self.sim_dt
        if self.total % self.max_writes == 0:
            self.new_file(solver)
        self.total += 1
        i = self.file["scales/iteration"].shape[0]
        u = solver.grid()
        values = {"scales/sim_time": solver.sim_time, "scales/wall_time": solver.wall_time(),
                  "scales/world_time": time.time(), "scales/timestep": timestep,
                  "scales/iteration": solver.iteration, "scales/write_number": self.total,
                  "tasks/u": u, "tasks/energy": 0.5 * np.mean(u * u) * Lx, "tasks/mass": np.mean(u) * Lx}
        for key, v in values.items():
            d = self.file[key]
            d.resize(i + 1, axis=0)
            d[i] = v
        self.file.attrs["writes"] = i + 1
        self.file.flush()


class Solver:
    """Integrating-factor RK4."""

    def __init__(self):
        self.start = time.time()
        self.x = np.arange(Nx) * Lx / Nx
        self.k = 2 * np.pi * np.fft.rfftfreq(Nx, Lx / Nx)
        self.mask = np.arange(len(self.k)) < Nx // 3
        n = 20
        u0 = np.log(1 + np.cosh(n) ** 2 / np.cosh(n * (self.x - 0.2 * Lx)) ** 2) / (2 * n)
        rng = np.random.default_rng(42)
        self.uh = np.fft.rfft(u0 + 1e-3 * rng.standard_normal(Nx)) * self.mask
        lin = -a * self.k ** 2 + 1j * b * self.k ** 3
        self.e_half, self.e = np.exp(lin * timestep / 2), np.exp(lin * timestep)
        self.sim_time, self.iteration = 0.0, 0

    def wall_time(self):
        return time.time() - self.start

    def grid(self):
        return np.fft.irfft(self.uh, Nx)

    def rhs(self, uh):
        u = np.fft.irfft(uh, Nx)
        return -0.5j * self.k * np.fft.rfft(u * u) * self.mask

    def step(self):
        dt, e2, u = timestep, self.e_half, self.uh
        k1 = self.rhs(u)
        k2 = self.rhs(e2 * (u + dt / 2 * k1))
        k3 = self.rhs(e2 * u + dt / 2 * k2)
        k4 = self.rhs(self.e * u + dt * e2 * k3)
        self.uh = self.e * u + dt / 6 * (self.e * k1 + 2 * e2 * (k2 + k3) + k4)
        self.iteration += 1
        self.sim_time = self.iteration * dt

    def log_stats(self, setup_time, warm):
        end = self.wall_time()
        run = end - warm
        dof = Nx * (self.iteration - 10)
        logger.info("Final iteration: %i", self.iteration)
        logger.info("Final sim time: %s", self.sim_time)
        logger.info("Setup time (init - iter 0): %.4g sec", setup_time)
        logger.info("Warmup time (iter 0-10): %.4g sec", warm - setup_time)
        logger.info("Run time (iter 10-end): %.4g sec", run)
        logger.info("CPU time (iter 10-end): %.4g cpu-hr", run / 3600)
        logger.info("Speed: %.4g mode-stages/cpu-sec", 4 * dof / run)


def main():
    solver = Solver()
    snapshots = FileHandler("snapshots", sim_dt=0.2, max_writes=16)
    setup = solver.wall_time()
    warm = setup
    logger.info("Starting main loop")
    try:
        while solver.sim_time < stop_sim_time - 1e-9:
            snapshots.process(solver)
            solver.step()
            if solver.iteration == 10:
                warm = solver.wall_time()
            if solver.iteration % 300 == 0:
                logger.info("Iteration=%i, Time=%e, dt=%e, max(u)=%.12g, speed=%.1f it/s", solver.iteration,
                            solver.sim_time, timestep, np.abs(solver.grid()).max(),
                            solver.iteration / solver.wall_time())
    except Exception:
        logger.error("Exception raised, triggering end of main loop.")
        raise
    finally:
        snapshots.process(solver, force=True)
        solver.log_stats(setup, warm)
        snapshots.file.close()
    u = solver.grid()
    i = int(np.argmax(u))
    print(f"t = {solver.sim_time:g}: highest crest {u[i]:.15g} at x = {solver.x[i]:.6f}, mass {u.mean() * Lx:.15g}")
    np.savetxt("final_state.csv", np.c_[solver.x, u], delimiter=",", header="x,u", comments="")


if __name__ == "__main__":
    main()
