"""Total variation distances of the marginals."""
import itertools


def _tvd(a, b):
    idx = a.index.union(b.index)
    return 0.5 * float((a.reindex(idx, fill_value=0) - b.reindex(idx, fill_value=0)).abs().sum())


def marginal_report(real, synth):
    cols = list(real.columns)
    one = {c: _tvd(real[c].value_counts(normalize=True, sort=False).sort_index(),
                   synth[c].value_counts(normalize=True, sort=False).sort_index()) for c in cols}
    two = {f"{a}x{b}": _tvd((real.groupby([a, b]).size() / len(real)).sort_index(),
                            (synth.groupby([a, b]).size() / len(synth)).sort_index())
           for a, b in itertools.combinations(cols, 2)}
    return {"one_way": one, "two_way": two, "two_way_mean": sum(two.values()) / len(two)}
