"""Scores in [0, 1] for one case and one answer."""


def field_recall(case, answer):
    got = answer["fields"]
    right = sum(got.get(key) == value for key, value in case.expected.items())
    return right / len(case.expected)


def exact(case, answer):
    return float(answer["fields"] == case.expected)


def calibration(case, answer):
    return 1.0 - abs(answer["confidence"] - field_recall(case, answer))


EVALUATORS = {"field_recall": field_recall, "exact": exact, "calibration": calibration}
