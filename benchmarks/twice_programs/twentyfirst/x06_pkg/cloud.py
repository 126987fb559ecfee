"""Triangulation and export."""
import numpy as np


def triangulate(model, match, k):
    """Linear triangulation of the inliers, returns points and mean error."""
    pl, pr = k @ match.pose_left, k @ match.pose_right
    points = []
    for x, y in zip(match.left[model.inliers], match.right[model.inliers]):
        a = np.stack([x[0] * pl[2] - pl[0], x[1] * pl[2] - pl[1],
                      y[0] * pr[2] - pr[0], y[1] * pr[2] - pr[1]])
        v = np.linalg.svd(a)[2][-1]
        points.append(v[:3] / v[3])
    points = np.array(points)
    hom = np.column_stack([points, np.ones(len(points))])
    pix = hom @ pr.T
    err = pix[:, :2] / pix[:, 2:] - match.right[model.inliers]
    return points, float(np.sqrt((err ** 2).sum(axis=1)).mean())


def save_ply(path, points):
    with open(path, "w") as fh:
        fh.write("ply\nformat ascii 1.0\n")
        fh.write(f"element vertex {len(points)}\n")
        fh.write("property float x\nproperty float y\nproperty float z\nend_header\n")
        for p in points:
            fh.write("%.6f %.6f %.6f\n" % tuple(p))
