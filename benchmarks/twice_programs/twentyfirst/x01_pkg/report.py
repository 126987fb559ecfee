"""Numbers for the summary page."""


def summarise(iteration, assignments, candidates, added):
    errors = [e for _, e in assignments]
    return {
        "iteration": iteration,
        "assigned": len(assignments),
        "mean_errors": sum(errors) / len(errors),
        "exact": sum(1 for e in errors if e == 0),
        "added": added,
        "support": (sum(c.support for c in candidates) / len(candidates)
                    if candidates else 0.0),
        "cluster_sizes": [c.n_reads for c in candidates],
    }
