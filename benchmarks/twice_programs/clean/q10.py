"""Acceptance tests of a small route planner and a solver, in Robot Framework's format.

Output format: Robot Framework console report, output.xml (status elements with
times), xunit.xml and a log.html.
Seen at: https://github.com/robotframework/robotframework/issues/2936
         https://github.com/cloudbees-oss/smart-tests-cli/pull/1314
Field: acceptance testing.
"""
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from datetime import datetime

import networkx as nx
import numpy as np

WIDTH = 78


def stamp(t):
    d = datetime.fromtimestamp(t)
    return d.strftime("%Y%m%d %H:%M:%S.") + f"{d.microsecond // 1000:03d}"


class Recorder:
    def __init__(self, test):
        self.test = test

    def keyword(self, name, func, *args):
        kw = ET.SubElement(self.test, "kw", name=name, library="Planner")
        for a in args:
            ET.SubElement(kw, "arg").text = str(a)
        t0, status = time.time(), "PASS"
        try:
            value = func(*args)
            ET.SubElement(kw, "msg", timestamp=stamp(time.time()), level="INFO").text = f"${{result}} = {value}"
            return value
        except AssertionError as exc:
            status = "FAIL"
            ET.SubElement(kw, "msg", timestamp=stamp(time.time()), level="FAIL").text = str(exc)
            raise
        finally:
            ET.SubElement(kw, "status", status=status, starttime=stamp(t0), endtime=stamp(time.time()))


def town():
    rng = random.Random(5)
    g = nx.grid_2d_graph(18, 18)
    for a, b in g.edges:
        g[a][b]["weight"] = rng.randint(1, 20)
    return g


G = town()


def should_be(actual, expected, tol=0):
    if abs(actual - expected) > tol:
        raise AssertionError(f"{actual} != {expected}")
    return actual


def test_corner_route(rec):
    """Corner to corner route"""
    cost = rec.keyword("Shortest Route", lambda a, b: nx.dijkstra_path_length(G, a, b), (0, 0), (17, 17))
    back = rec.keyword("Shortest Route", lambda a, b: nx.dijkstra_path_length(G, a, b), (17, 17), (0, 0))
    rec.keyword("Should Be Equal As Numbers", should_be, cost, back)
    return f"cost {cost}"


def test_spanning_tree(rec):
    """Cheapest cable plan"""
    total = rec.keyword("Spanning Tree Cost", lambda: int(sum(d["weight"] for *_, d in nx.minimum_spanning_edges(G, data=True))))
    return f"cable {total}"


def test_bottleneck(rec):
    """Most loaded crossing"""
    score = rec.keyword("Load Centrality", lambda: nx.betweenness_centrality(G, k=40, weight="weight", seed=3))
    top = max(sorted(score), key=lambda n: score[n])
    return f"crossing {top[0]},{top[1]} load {score[top]:.6f}"


def test_solver(rec):
    """Linear solver residual"""
    def residual(n):
        rng = np.random.default_rng(9)
        a = rng.normal(size=(n, n)) + n * np.eye(n)
        b = rng.normal(size=n)
        x = np.linalg.solve(a, b)
        return float(np.round(np.abs(x).sum(), 6)) if np.abs(a @ x - b).max() < 1e-9 else -1.0
    s = rec.keyword("Solve And Check", residual, 220)
    rec.keyword("Should Be Equal As Numbers", should_be, s > 0, True)
    return f"norm {s:.6f}"


def test_worker(rec):
    """Worker process answers"""
    def ask(n):
        code = f"import os,sys; print(sum(i*i for i in range({n}))); print(os.getpid(), file=sys.stderr)"
        r = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
        rec.test.append(ET.Comment(f" worker pid {r.stderr.strip()} "))
        return int(r.stdout)
    return f"sum {rec.keyword('Run Worker', ask, 30000)}"


def test_tempfile(rec):
    """Report file is complete"""
    def write(rows):
        with tempfile.TemporaryDirectory(prefix="robot_") as d:
            path = os.path.join(d, "report.txt")
            with open(path, "w") as fh:
                fh.writelines(f"{i},{i ** 3 % 101}\n" for i in range(rows))
            rec.test.append(ET.Comment(f" wrote {path} "))
            return sum(int(line.split(",")[1]) for line in open(path))
    return f"checksum {rec.keyword('Write Report', write, 5000)}"


def test_toll(rec):
    """Toll stays below budget"""
    cost = rec.keyword("Shortest Route", lambda a, b: nx.dijkstra_path_length(G, a, b), (0, 17), (17, 0))
    toll = rec.keyword("Toll For", lambda c: round(c * 0.37, 2), cost)

    def below(value, limit):
        if value > limit:
            raise AssertionError(f"Toll {value} is above budget {limit}")
    rec.keyword("Should Be Below", below, toll, 40)
    return f"toll {toll}"


def main():
    begin = time.time()
    tests = [test_corner_route, test_spanning_tree, test_bottleneck, test_solver, test_worker, test_tempfile, test_toll]
    robot = ET.Element("robot", generator=f"Robot 6.1.1 (Python {platform.python_version()} on {sys.platform})",
                       generated=stamp(begin), rpa="false", schemaversion="4")
    suite = ET.SubElement(robot, "suite", id="s1", name="Planner", source=os.path.join(os.getcwd(), "planner.robot"))
    xunit = ET.Element("testsuite", name="Planner", tests=str(len(tests)), timestamp=datetime.now().isoformat())
    print("=" * WIDTH + "\nPlanner" + "\n" + "=" * WIDTH)
    counts, rows = {"PASS": 0, "FAIL": 0}, []
    for i, func in enumerate(tests, 1):
        node = ET.SubElement(suite, "test", id=f"s1-t{i}", name=func.__doc__, line=str(10 * i))
        t0, status, msg = time.time(), "PASS", ""
        try:
            msg = func(Recorder(node))
        except AssertionError as exc:
            status, msg = "FAIL", str(exc)
        t1 = time.time()
        ET.SubElement(node, "status", status=status, starttime=stamp(t0), endtime=stamp(t1)).text = msg
        case = ET.SubElement(xunit, "testcase", classname="Planner", name=func.__doc__, time=f"{t1 - t0:.3f}")
        if status == "FAIL":
            ET.SubElement(case, "failure", message=msg, type="AssertionError")
        counts[status] += 1
        rows.append((func.__doc__, status, msg, t1 - t0))
        print(f"{func.__doc__:<{WIDTH - 9}}| {status} |\n{msg}\n" + "-" * WIDTH)
    end = time.time()
    ET.SubElement(suite, "status", status="FAIL" if counts["FAIL"] else "PASS", starttime=stamp(begin), endtime=stamp(end))
    st = ET.SubElement(ET.SubElement(robot, "statistics"), "total")
    stat = ET.SubElement(st, "stat", fail=str(counts["FAIL"]), skip="0")
    stat.set("pass", str(counts["PASS"]))
    stat.text = "All Tests"
    xunit.set("failures", str(counts["FAIL"]))
    xunit.set("time", f"{end - begin:.3f}")
    ET.ElementTree(robot).write("output.xml", encoding="UTF-8", xml_declaration=True)
    ET.ElementTree(xunit).write("xunit.xml", encoding="UTF-8", xml_declaration=True)
    with open("log.html", "w") as fh:
        fh.write(f"<h1>Planner Log</h1><p>Generated {stamp(end)} UTC+00:00, {end - begin:.3f} s ago</p><table>")
        for name, status, msg, secs in rows:
            fh.write(f"<tr><td>{name}</td><td>{status}</td><td>{msg}</td><td>00:00:{secs:06.3f}</td></tr>\n")
        fh.write("</table>")
    total = counts["PASS"] + counts["FAIL"]
    print(f"Planner{'| FAIL |' if counts['FAIL'] else '| PASS |':>{WIDTH - 7}}\n{total} tests, {counts['PASS']} passed, {counts['FAIL']} failed")
    print("=" * WIDTH)
    for label, name in (("Output:", "output.xml"), ("XUnit:", "xunit.xml"), ("Log:", "log.html")):
        print(f"{label:<8} {os.path.join(os.getcwd(), name)}")
    print(f"Elapsed: {end - begin:.3f} s")


if __name__ == "__main__":
    main()
