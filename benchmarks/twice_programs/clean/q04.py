"""Krauss car following through two traffic lights, reported like Eclipse SUMO.

Output format: SUMO's console log (--verbose --duration-log.statistics), the
statistic-output and tripinfo-output XML files; TraCI on a loopback port.
Seen at: https://sumo.dlr.de/docs/Simulation/Output/StatisticOutput.html
         https://sumo.dlr.de/daily/extra_gcc4_64report/complex/test_python2_01Apr2023.html
Field: traffic engineering.
"""
import math
import random
import socket
import struct
import threading
import time
from datetime import datetime
from xml.sax.saxutils import quoteattr

ROAD, END = 1500.0, 900
LIGHTS = [(500.0, 60, 35, 0), (1000.0, 60, 30, 20)]     # pos, cycle, green, offset
ACCEL, DECEL, TAU, VMAX, LEN, GAP = 2.6, 4.5, 1.0, 13.89, 5.0, 2.5


class Vehicle:
    __slots__ = ("vid", "depart", "wanted", "pos", "speed", "wait", "loss", "arrive", "sigma")

    def __init__(self, vid, wanted):
        self.vid, self.wanted, self.depart = vid, wanted, None
        self.pos, self.speed, self.wait, self.loss, self.arrive, self.sigma = 0.0, 0.0, 0, 0.0, None, 0.5


def safe_speed(gap, leader):
    bt = DECEL * TAU
    return max(0.0, math.sqrt(bt * bt + leader * leader + 2 * DECEL * gap) - bt) if gap > 0 else 0.0


def stop_distance(pos, t):
    for where, cycle, green, off in LIGHTS:
        if pos < where and (t + off) % cycle >= green:
            return where - pos
    return None


def traci_server(sock, state, served):
    conn, _ = sock.accept()
    with conn:
        while True:
            req = conn.recv(4)
            if len(req) < 4:
                return
            step = struct.unpack("!i", req)[0]
            conn.sendall(struct.pack("!id", step, state["mean_speed"]))
            served.append(step)


def main():
    clock_begin = time.time()
    for part in ("net-file from 'corridor.net.xml'", "route-files incrementally from 'demand.rou.xml'"):
        t = time.perf_counter()
        time.sleep(0.003)
        print(f"Loading {part} ... done ({(time.perf_counter() - t) * 1000:.0f}ms).")
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    print(f"***Starting server on port {port} ***")
    state, served = {"mean_speed": 0.0}, []
    server = threading.Thread(target=traci_server, args=(sock, state, served), name=f"traci-{port}")
    server.start()
    client = socket.create_connection(("127.0.0.1", port))
    print(f"Simulation started with time: 0.00   [{server.name} tid={server.native_id}]")
    rng = random.Random(42)
    t, queue = 0.0, []
    while t < END - 150:
        t += rng.expovariate(1 / 2.6)
        queue.append(Vehicle(f"flow.{len(queue)}", int(t)))
    loaded = len(queue)
    road, done, updates, traci_time, samples = [], [], 0, 0.0, []
    mark = time.perf_counter()
    for step in range(END):
        prev = None
        for veh in road:
            limit = min(VMAX, veh.speed + ACCEL)
            if prev is not None:
                limit = min(limit, safe_speed(prev[0] - LEN - GAP - veh.pos, prev[1]))
            red = stop_distance(veh.pos, step)
            if red is not None and red > veh.speed ** 2 / (2 * DECEL):
                limit = min(limit, safe_speed(red - 1.0, 0.0))
            prev = (veh.pos, veh.speed)
            veh.speed = max(0.0, limit - veh.sigma * ACCEL * rng.random() * 0.5)
            veh.pos += veh.speed
            veh.loss += 1 - veh.speed / VMAX
            veh.wait += veh.speed < 0.1
            updates += 1
        while road and road[0].pos >= ROAD:
            gone = road.pop(0)
            gone.arrive = step
            done.append(gone)
        if queue and queue[0].wanted <= step and (not road or road[-1].pos > 2 * LEN):
            veh = queue.pop(0)
            veh.depart, veh.speed = step, min(VMAX, road[-1].speed if road else VMAX)
            road.append(veh)
        state["mean_speed"] = sum(v.speed for v in road) / len(road) if road else 0.0
        if step % 100 == 0 and step:
            tt = time.perf_counter()
            client.sendall(struct.pack("!i", step))
            back, speed = struct.unpack("!id", client.recv(12, socket.MSG_WAITALL))
            traci_time += time.perf_counter() - tt
            samples.append((back, speed))
            ms = max((time.perf_counter() - mark) * 1000 / 100, 1e-6)
            mark = time.perf_counter()
            print(f"Step #{step}.00 ({ms:.2f}ms ~= {1000 / ms:.2f}*RT, ~{1000 / ms * len(road):.2f}UPS, "
                  f"TraCI: {traci_time * 1000:.0f}ms, vehicles TOT {loaded - len(queue)} ACT {len(road)} BUF {len(queue)})")
        time.sleep(0.0008)
    client.close()
    server.join()
    sock.close()
    clock_end = time.time()
    dur = clock_end - clock_begin
    n = len(done)
    inserted = n + len(road)
    speed = sum(ROAD / (v.arrive - v.depart) for v in done) / n
    trip = sum(v.arrive - v.depart for v in done) / n
    wait = sum(v.wait for v in done) / n
    loss = sum(v.loss for v in done) / n
    delay = sum(v.depart - v.wanted for v in done) / n
    print(f"Simulation ended at time: {END}.00")
    print("Reason: The final simulation step has been reached.")
    print(f"Performance:\n Duration: {dur:.2f}s\n TraCI-Duration: {traci_time:.2f}s\n Real time factor: {END / dur:.3f}\n UPS: {updates / dur:.6f}")
    print(f"Vehicles:\n Inserted: {inserted} (Loaded: {loaded})\n Running: {len(road)}\n Waiting: {len(queue)}")
    print(f"Statistics (avg of {n}):\n RouteLength: {ROAD:.2f}\n Speed: {speed:.2f}\n Duration: {trip:.2f}\n"
          f" WaitingTime: {wait:.2f}\n TimeLoss: {loss:.2f}\n DepartDelay: {delay:.2f}")
    print("TraCI mean speeds: " + " ".join(f"{s}:{v:.3f}" for s, v in samples))
    stamp = f"<!-- generated on {datetime.now():%Y-%m-%d %H:%M:%S.%f} by Eclipse SUMO sumo Version 1.20.0 -->\n"
    with open("stats.xml", "w") as fh:
        fh.write('<?xml version="1.0" encoding="UTF-8"?>\n\n' + stamp + "<statistics>\n")
        fh.write(f'    <performance clockBegin="{clock_begin:.2f}" clockEnd="{clock_end:.2f}" clockDuration="{dur:.2f}" '
                 f'traciDuration="{traci_time:.2f}" realTimeFactor="{END / dur:.2f}" vehicleUpdatesPerSecond="{updates / dur:.2f}" '
                 f'personUpdatesPerSecond="0.00" begin="0.00" end="{END}.00" duration="{END}.00"/>\n')
        fh.write(f'    <vehicles loaded="{loaded}" inserted="{inserted}" running="{len(road)}" waiting="{len(queue)}"/>\n')
        fh.write(f'    <vehicleTripStatistics count="{n}" routeLength="{ROAD:.2f}" speed="{speed:.2f}" duration="{trip:.2f}" '
                 f'waitingTime="{wait:.2f}" timeLoss="{loss:.2f}" departDelay="{delay:.2f}"/>\n</statistics>\n')
    with open("tripinfo.xml", "w") as fh:
        fh.write('<?xml version="1.0" encoding="UTF-8"?>\n\n' + stamp + "<tripinfos>\n")
        for v in done:
            fh.write(f'    <tripinfo id={quoteattr(v.vid)} depart="{v.depart}.00" arrival="{v.arrive}.00" '
                     f'duration="{v.arrive - v.depart}.00" waitingTime="{v.wait}.00" timeLoss="{v.loss:.2f}"/>\n')
        fh.write("</tripinfos>\n")


if __name__ == "__main__":
    main()
