"""Graph statistics over many generated networks in a process pool, saved through SQLAlchemy, in the style of a networkx/graph-tool study."""
import argparse
import hashlib
import json
import logging
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import datetime, timezone
from pathlib import Path

import networkx as nx
import numpy as np
from sqlalchemy import DateTime, Float, ForeignKey, Integer, String, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

log = logging.getLogger("netstudy")


class Base(DeclarativeBase):
    pass


class Study(Base):
    __tablename__ = "study"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40))
    created_at: Mapped[datetime] = mapped_column(DateTime, server_default=func.now())
    finished_at: Mapped[datetime | None] = mapped_column(DateTime)
    graphs: Mapped[list["GraphRow"]] = relationship(back_populates="study", order_by="GraphRow.id")


class GraphRow(Base):
    __tablename__ = "graph"
    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(ForeignKey("study.id"))
    family: Mapped[str] = mapped_column(String(20))
    replicate: Mapped[int] = mapped_column(Integer)
    nodes: Mapped[int]
    edges: Mapped[int]
    clustering: Mapped[float] = mapped_column(Float)
    avg_path: Mapped[float] = mapped_column(Float)
    modularity: Mapped[float] = mapped_column(Float)
    assortativity: Mapped[float] = mapped_column(Float)
    top_node: Mapped[int]
    edge_hash: Mapped[str] = mapped_column(String(40))
    worker_pid: Mapped[int]
    cpu_seconds: Mapped[float]
    updated_at: Mapped[datetime] = mapped_column(DateTime)
    study: Mapped[Study] = relationship(back_populates="graphs")


FAMILIES = {
    "erdos": lambda n, s: nx.gnm_random_graph(n, 4 * n, seed=s),
    "barabasi": lambda n, s: nx.barabasi_albert_graph(n, 4, seed=s),
    "smallworld": lambda n, s: nx.connected_watts_strogatz_graph(n, 8, 0.1, seed=s),
    "blocks": lambda n, s: nx.stochastic_block_model([n // 4] * 4, (np.eye(4) * 0.09 + 0.006).tolist(), seed=s),
}


def analyse(job):
    family, rep, n, seed = job
    start, cpu = time.time(), time.process_time()
    g = FAMILIES[family](n, seed)
    giant = g.subgraph(sorted(max(nx.connected_components(g), key=len))).copy()
    rng = np.random.default_rng(seed)
    sources = rng.choice(sorted(giant), size=40, replace=False)
    dist = [d for s in sources for d in nx.single_source_shortest_path_length(giant, int(s)).values()]
    comms = nx.community.louvain_communities(giant, seed=seed)
    pr = nx.pagerank(giant)
    edges = sorted(tuple(sorted(e)) for e in g.edges)
    return dict(
        family=family, replicate=rep, nodes=g.number_of_nodes(), edges=g.number_of_edges(),
        clustering=nx.average_clustering(giant), avg_path=float(np.mean(dist)),
        modularity=nx.community.modularity(giant, comms),
        assortativity=float(nx.degree_assortativity_coefficient(giant)),
        top_node=max(pr, key=lambda v: (pr[v], -v)), edge_hash=hashlib.sha1(repr(edges).encode()).hexdigest(),
        worker_pid=os.getpid(), cpu_seconds=time.process_time() - cpu, _wall=time.time() - start)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--nodes", type=int, default=400)
    ap.add_argument("--replicates", type=int, default=6)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seed", type=int, default=2718)
    args = ap.parse_args()
    Path("results").mkdir(exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(levelname).1s%(asctime)s %(process)d %(filename)s:%(lineno)d] %(message)s",
                        datefmt="%m%d %H:%M:%S", handlers=[logging.StreamHandler(), logging.FileHandler("results/study.log")])
    seeds = np.random.SeedSequence(args.seed).generate_state(len(FAMILIES) * args.replicates)
    jobs = [(f, r, args.nodes, int(seeds[i * args.replicates + r]))
            for i, f in enumerate(FAMILIES) for r in range(args.replicates)]

    engine = create_engine("sqlite:///results/networks.db")
    Base.metadata.create_all(engine)
    with Session(engine) as s:
        study = Study(name=f"four-families-n{args.nodes}")
        s.add(study)
        s.commit()
        study_id = study.id

    log.info("submitting %d jobs to %d workers", len(jobs), args.workers)
    t0 = time.time()
    results = [None] * len(jobs)
    with ProcessPoolExecutor(args.workers) as pool:
        futures = {pool.submit(analyse, j): i for i, j in enumerate(jobs)}
        for done, fut in enumerate(as_completed(futures), 1):
            i = futures[fut]
            results[i] = r = fut.result()
            eta = (time.time() - t0) / done * (len(jobs) - done)
            print(f"[{done:2d}/{len(jobs)}] {r['family']}-{r['replicate']} finished on worker {r['worker_pid']} "
                  f"in {r['_wall']:.2f}s, ETA {eta:.1f}s", flush=True)
    log.info("pool finished in %.2fs", time.time() - t0)

    with Session(engine) as s:
        study = s.get(Study, study_id)
        for r in results:
            study.graphs.append(GraphRow(**{k: v for k, v in r.items() if not k.startswith("_")},
                                         updated_at=datetime.now(timezone.utc)))
        study.finished_at = datetime.now(timezone.utc)
        s.commit()
        rows = s.execute(
            select(GraphRow.family, func.count(), func.avg(GraphRow.edges), func.avg(GraphRow.clustering),
                   func.avg(GraphRow.avg_path), func.avg(GraphRow.modularity), func.sum(GraphRow.cpu_seconds))
            .where(GraphRow.study_id == study_id).group_by(GraphRow.family).order_by(GraphRow.family)).all()

    print(f"\n{'family':<12}{'n':>3}{'edges':>9}{'C':>9}{'L':>8}{'Q':>8}{'cpu[s]':>8}")
    summary = []
    for fam, n, e, c, l, q, cpu in rows:
        print(f"{fam:<12}{n:>3}{e:>9.1f}{c:>9.4f}{l:>8.3f}{q:>8.4f}{cpu:>8.2f}")
        summary.append({"family": fam, "graphs": n, "edges": e, "clustering": c, "path": l, "modularity": q, "cpu_time": cpu})
    Path("results/summary.json").write_text(json.dumps(
        {"generated": datetime.now().strftime("%c"), "seed": args.seed, "wall_seconds": round(time.time() - t0, 3),
         "load_average": os.getloadavg(), "families": summary}, indent=2))

    g = nx.Graph(name="similarity", date=datetime.now().date().isoformat())
    feats = np.array([[r["clustering"], r["avg_path"] / 10, r["modularity"]] for r in results])
    for i, r in enumerate(results):
        g.add_node(f"{r['family']}-{r['replicate']}", top=int(r["top_node"]), runtime=r["_wall"])
    names = list(g)
    for i in range(len(names)):
        j = int(np.argsort(((feats - feats[i]) ** 2).sum(1), kind="stable")[1])
        g.add_edge(names[i], names[j], weight=round(float(np.linalg.norm(feats[i] - feats[j])), 9))
    nx.write_graphml(g, "results/similarity.graphml")
    log.info("similarity graph: %d nodes, %d edges, %d components", len(g), g.size(), nx.number_connected_components(g))


if __name__ == "__main__":
    main()
