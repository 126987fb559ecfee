"""Incremental structure from motion with bundle adjustment on synthetic views, logging as AliceVision/Meshroom does.

Log format: https://github.com/alicevision/Meshroom/issues/1219
([HH:MM:SS.ffffff][info] Bundle adjustment iteration: 2 took 935 msec., resection and BA statistics)
"""
import json
import os
import time
import uuid
from datetime import datetime

import numpy as np
from scipy.optimize import least_squares
from scipy.sparse import lil_matrix

SEED, N_VIEWS, N_POINTS, FOCAL, NOISE = 8, 14, 260, 900.0, 0.7
T_START = time.perf_counter()
LOG = open("sfm.log", "w")


def log(msg, level="info"):
    text = f"[{datetime.now():%H:%M:%S.%f}][{level}] {msg}"
    print(text, flush=True)
    LOG.write(text + "\n")


def rodrigues(r):
    th = np.sqrt((r ** 2).sum(-1, keepdims=True)) + 1e-12
    k = r / th
    kx = np.zeros(r.shape[:-1] + (3, 3))
    kx[..., 0, 1], kx[..., 0, 2], kx[..., 1, 0] = -k[..., 2], k[..., 1], k[..., 2]
    kx[..., 1, 2], kx[..., 2, 0], kx[..., 2, 1] = -k[..., 0], -k[..., 1], k[..., 0]
    s, c = np.sin(th)[..., None], np.cos(th)[..., None]
    return np.eye(3) + s * kx + (1 - c) * (kx @ kx)


def project(poses, pts, focal):
    rot = rodrigues(poses[:, :3])
    p = np.einsum("nij,nj->ni", rot, pts) + poses[:, 3:]
    return focal * p[:, :2] / p[:, 2:]


def make_scene():
    rng = np.random.default_rng(SEED)
    pts = rng.uniform(-1, 1, (N_POINTS, 3)) * [2.0, 1.0, 1.0]
    ang = np.linspace(-0.6, 0.6, N_VIEWS)
    poses = np.column_stack([rng.normal(0, 0.02, N_VIEWS), ang, rng.normal(0, 0.02, N_VIEWS),
                             rng.normal(0, 0.1, N_VIEWS), rng.normal(0, 0.1, N_VIEWS), np.full(N_VIEWS, 6.0)])
    obs = {}
    for v in range(N_VIEWS):
        uv = project(np.repeat(poses[v:v + 1], N_POINTS, 0), pts, FOCAL) + rng.normal(0, NOISE, (N_POINTS, 2))
        visible = rng.random(N_POINTS) < 0.55
        for p in np.flatnonzero(visible):
            if rng.random() < 0.02:
                uv[p] += rng.normal(0, 60, 2)
            obs[v, int(p)] = uv[p]
    view_ids = [int(i) for i in rng.integers(10 ** 8, 2 ** 31, N_VIEWS)]
    return pts, poses, obs, view_ids, rng


class Sfm:
    def __init__(self):
        self.true_pts, self.true_poses, self.obs, self.view_ids, rng = make_scene()
        self.poses = self.true_poses + rng.normal(0, 0.02, self.true_poses.shape)
        self.poses[:2] = self.true_poses[:2]            # gauge: the two first views are given
        self.pts = self.true_pts + rng.normal(0, 0.08, self.true_pts.shape)
        self.focal = FOCAL * 1.03
        self.active = [0, 1]
        self.report = []

    def tracks(self):
        seen = {}
        for (v, p) in self.obs:
            if v in self.active:
                seen.setdefault(p, []).append(v)
        return {p: vs for p, vs in sorted(seen.items()) if len(vs) >= 2}

    def bundle(self, it):
        t0 = time.perf_counter()
        tr = self.tracks()
        keys = [(v, p) for p, vs in tr.items() for v in sorted(vs)]
        free = [v for v in self.active if v > 1]
        pid = {p: i for i, p in enumerate(tr)}
        vid = {v: i for i, v in enumerate(free)}
        target = np.array([self.obs[k] for k in keys])
        nv, npt = len(free), len(pid)
        ci = np.array([k[0] for k in keys])
        pi = np.array([pid[k[1]] for k in keys])
        x0 = np.concatenate([self.poses[free].ravel(), self.pts[list(pid)].ravel(), [self.focal / 100]])

        def unpack(x):
            poses = self.poses.copy()
            poses[free] = x[:6 * nv].reshape(nv, 6)
            return poses, x[6 * nv:-1].reshape(npt, 3), x[-1] * 100

        def resid(x):
            poses, pts, f = unpack(x)
            return (project(poses[ci], pts[pi], f) - target).ravel()

        sp = lil_matrix((2 * len(keys), len(x0)), dtype=int)
        for r, (v, p) in enumerate(keys):
            if v in vid:
                sp[2 * r:2 * r + 2, 6 * vid[v]:6 * vid[v] + 6] = 1
            c = 6 * nv + 3 * pid[p]
            sp[2 * r:2 * r + 2, c:c + 3] = 1
            sp[2 * r:2 * r + 2, -1] = 1
        first = np.sqrt(np.mean(resid(x0) ** 2))
        sol = least_squares(resid, x0, jac_sparsity=sp, loss="soft_l1", x_scale="jac", max_nfev=5, method="trf")
        poses, pts, self.focal = unpack(sol.x)
        self.poses = poses
        self.pts[list(pid)] = pts
        res = np.abs(resid(sol.x)).reshape(-1, 2).max(1)
        final = np.sqrt(np.mean(resid(sol.x) ** 2))
        dur = time.perf_counter() - t0
        log("Bundle Adjustment Statistics:\n\t- local strategy enabled: no\n"
            f"\t- adjustment duration: {dur:.6f} s\n"
            f"\t- poses:\n\t    - # refined:  {nv}\n\t    - # constant: 2\n\t    - # ignored:  0\n"
            f"\t- landmarks:\n\t    - # refined:  {npt}\n\t    - # constant: 0\n\t    - # ignored:  0\n"
            f"\t- intrinsics:\n\t    - # refined:  1\n\t- # residual blocks: {len(keys)}\n"
            f"\t- # successful iterations: {sol.njev}\n\t- # unsuccessful iterations: {sol.nfev - sol.njev}\n"
            f"\t- initial RMSE: {first:.6g}\n\t- final   RMSE: {final:.6g}")
        out = [k for k, r in zip(keys, res) if r > 12.0]
        for k in out:
            del self.obs[k]
        log(f"Remove outliers: \n\t- # outliers residual error: {len(out)}\n\t- # outliers angular error: 0")
        log(f"Bundle adjustment iteration: {it} took {1000 * (time.perf_counter() - t0):.0f} msec.")
        self.report.append({"views": len(self.active), "landmarks": npt, "initial_rmse": first, "final_rmse": final,
                            "focal": self.focal, "outliers": len(out), "duration": dur})
        return len(out)

    def resect(self, v, k):
        log(f"[{k}/{N_VIEWS}] Robust Resection of view: {self.view_ids[v]}")
        used = [p for (w, p) in self.obs if w == v]
        uv = np.array([self.obs[v, p] for p in used])

        def resid(x):
            return (project(np.repeat(x[None], len(used), 0), self.pts[used], self.focal) - uv).ravel()

        sol = least_squares(resid, self.poses[v], loss="cauchy", max_nfev=30)
        self.poses[v] = sol.x
        ok = int((np.abs(resid(sol.x)).reshape(-1, 2).max(1) < 20).sum())
        log(f"Robust Resection information:\n\t- resection status: true\n\t- threshold (error max): 20\n"
            f"\t- # points used for resection: {len(used)}\n\t- # points validated by robust resection: {ok}")
        self.active.append(v)


def main():
    run = uuid.uuid4()
    log(f"Program called with the following parameters:\n * output = \"{os.getcwd()}/sfm.json\"\n * uid = {run}")
    log(f"Hardware : \n\tDetected core count : {os.cpu_count()}\n\tProcess : {os.getpid()}")
    sfm = Sfm()
    for k in range(2, N_VIEWS):
        log(f"Update Reconstruction:\n\t- resection id: {k - 2}\n\t- # images in the resection group: 1\n"
            f"\t- # images remaining: {N_VIEWS - k}")
        sfm.resect(k, k)
        if k % 3 == 0 or k == N_VIEWS - 1:
            log("Bundle adjustment start.")
            t0, it = time.perf_counter(), 0
            while True:
                log(f"Start bundle adjustment iteration: {it}")
                if sfm.bundle(it) < 5 or it == 2:
                    break
                it += 1
            log(f"Bundle adjustment with {it + 1} iterations took {1000 * (time.perf_counter() - t0):.0f} msec.")
    err = np.abs(sfm.pts - sfm.true_pts).mean()
    log(f"Structure from Motion statistics:\n\t- # input images: {N_VIEWS}\n\t- # cameras calibrated: {len(sfm.active)}\n"
        f"\t- # landmarks: {len(sfm.tracks())}\n\t- mean point error: {err:.8f}\n\t- focal: {sfm.focal:.6f}\n"
        f"\t- elapsed time: {time.perf_counter() - T_START:.3f} s")
    with open("sfm.json", "w") as f:
        json.dump({"version": ["1", "2", "0"], "uid": str(run), "date": datetime.now().isoformat(),
                   "views": [{"viewId": sfm.view_ids[v], "pose": sfm.poses[v].tolist()} for v in range(N_VIEWS)],
                   "intrinsic": {"focal": sfm.focal}, "steps": sfm.report}, f, indent=1)
    with open("cloud.ply", "w") as f:
        f.write(f"ply\nformat ascii 1.0\ncomment written {datetime.now():%a %b %d %H:%M:%S %Y}\nelement vertex {N_POINTS}\n"
                "property double x\nproperty double y\nproperty double z\nend_header\n")
        f.writelines(f"{p[0]:.9f} {p[1]:.9f} {p[2]:.9f}\n" for p in sfm.pts)


if __name__ == "__main__":
    main()
