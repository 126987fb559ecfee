"""Compares the balanced data with the full tables."""


def _shares(frame, column):
    share = frame.groupby(["is_buyer", column]).size()
    total = frame.groupby("is_buyer").size()
    return {f"{flag}/{value}": float(n / total[flag]) for (flag, value), n in share.items()}


def quality_report(con, frame):
    full = con.execute("SELECT is_buyer, AVG(age), COUNT(*) FROM flagged GROUP BY is_buyer ORDER BY is_buyer").fetchall()
    groups = frame.groupby("is_buyer")
    return {
        "rows_per_group": {str(k): int(v) for k, v in groups.size().items()},
        "mean_age": {str(k): float(v) for k, v in groups["age"].mean().items()},
        "mean_age_full": {str(flag): age for flag, age, _ in full},
        "rows_full": {str(flag): n for flag, _, n in full},
        "gender": _shares(frame, "gender_cd"),
        "prefecture": _shares(frame, "prefecture"),
        "amount": float(frame["amount"].sum()),
    }
