"""HSV / luma conversions on uint8 batches."""
import numpy as np


def rgb_to_hsv(img):
    x = img.astype(np.float64) / 255.0
    mx, mn = x.max(-1), x.min(-1)
    d = mx - mn
    r, g, b = x[..., 0], x[..., 1], x[..., 2]
    safe = np.where(d == 0, 1, d)
    h = np.where(mx == r, (g - b) / safe % 6, np.where(mx == g, (b - r) / safe + 2, (r - g) / safe + 4))
    h = np.where(d == 0, 0, h / 6)
    s = np.where(mx == 0, 0, d / np.where(mx == 0, 1, mx))
    return np.stack([h, s, mx], -1)


def hsv_to_rgb(hsv):
    h, s, v = hsv[..., 0] * 6, hsv[..., 1], hsv[..., 2]
    i = np.floor(h).astype(int) % 6
    f = h - np.floor(h)
    p, q, t = v * (1 - s), v * (1 - s * f), v * (1 - s * (1 - f))
    sel = [i == k for k in range(6)]
    rgb = np.stack([np.select(sel, [v, q, p, p, t, v]), np.select(sel, [t, v, v, q, p, p]),
                    np.select(sel, [p, p, t, v, v, q])], -1)
    return np.clip(np.rint(rgb * 255), 0, 255).astype(np.uint8)


def rgb_to_yuv(img):
    m = np.array([[.299, .587, .114], [-.147, -.289, .436], [.615, -.515, -.1]])
    return img.astype(np.float64) @ m.T


def yuv_to_rgb(yuv):
    m = np.array([[1, 0, 1.13983], [1, -.39465, -.5806], [1, 2.03211, 0]])
    return np.clip(np.rint(yuv @ m.T), 0, 255).astype(np.uint8)
