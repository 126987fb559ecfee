"""Read-level operations: sliding-window quality cut and adapter removal."""
from .simulate import ADAPTER


def cut_right(seq, qual, window=5, mean_q=22):
    scores = [ord(c) - 33 for c in qual]
    for i in range(0, max(1, len(scores) - window + 1)):
        part = scores[i:i + window]
        if sum(part) < mean_q * len(part):
            return seq[:i], qual[:i]
    return seq, qual


def cut_adapter(seq, qual, min_overlap=5):
    pos = seq.find(ADAPTER)
    if pos < 0:
        for n in range(len(ADAPTER) - 1, min_overlap - 1, -1):
            if seq.endswith(ADAPTER[:n]):
                pos = len(seq) - n
                break
    if pos < 0:
        return seq, qual, False
    return seq[:pos], qual[:pos], True


def process_pair(pair, min_len):
    (n1, s1, q1), (n2, s2, q2) = pair
    s1, q1, a1 = cut_adapter(s1, q1)
    s2, q2, a2 = cut_adapter(s2, q2)
    s1, q1 = cut_right(s1, q1)
    s2, q2 = cut_right(s2, q2)
    keep = len(s1) >= min_len and len(s2) >= min_len
    return keep, a1 or a2, ((n1, s1, q1), (n2, s2, q2))
