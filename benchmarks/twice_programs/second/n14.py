# networkx: a layout without a seed
import networkx, json
from lab.log import Run

def drawn(graph):
    return networkx.spring_layout(graph, iterations=5)  # cause

run = Run("layout")
places = drawn(networkx.karate_club_graph())
json.dump({str(n): [float(v) for v in p] for n, p in places.items()}, open("layout.json", "w"))
run.finish(x=float(sum(p[0] for p in places.values())))
