"""Loopback traffic watched by a small sensor that writes Zeek TSV logs.

Output format: Zeek conn.log, files.log, stats.log and notice.log (TSV with
#separator/#open/#close lines, random uids, ephemeral ports, durations).
Seen at: https://docs.tenzir.com/formats/zeek-tsv
         https://docs.zeek.org/en/v7.0.11/_sources/log-formats.rst.txt
Field: network security monitoring.
"""
import hashlib
import os
import random
import resource
import secrets
import socket
import string
import struct
import sys
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

ALPHABET = string.ascii_letters + string.digits
SERVICES = ("http", "dns", "ssh", "smtp")


def uid(prefix):
    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(17))


class Log:
    """One TSV log as the Zeek ASCII writer makes it."""

    def __init__(self, path, fields, types):
        self.fh = open(path + ".log", "w")
        self.lock = threading.Lock()
        self.fh.write("#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n")
        self.fh.write(f"#path\t{path}\n#open\t{time.strftime('%Y-%m-%d-%H-%M-%S')}\n")
        self.fh.write("#fields\t" + "\t".join(fields) + "\n#types\t" + "\t".join(types) + "\n")

    def write(self, *row):
        with self.lock:
            self.fh.write("\t".join(str(c) for c in row) + "\n")

    def close(self):
        self.fh.write(f"#close\t{time.strftime('%Y-%m-%d-%H-%M-%S')}\n")
        self.fh.close()


def recv_all(conn, n):
    buf = b""
    while len(buf) < n:
        part = conn.recv(n - len(buf))
        if not part:
            break
        buf += part
    return buf


def serve(sock, total):
    def one(conn):
        with conn:
            kind, seed, want = struct.unpack("!BII", recv_all(conn, 9))
            size = struct.unpack("!I", recv_all(conn, 4))[0]
            recv_all(conn, size)
            if want:
                conn.sendall(random.Random(seed).randbytes(want))
    with ThreadPoolExecutor(4, thread_name_prefix="responder") as pool:
        for _ in range(total):
            pool.submit(one, sock.accept()[0])


def plan():
    rng, flows = random.Random(20140523), []
    for i in range(1200):
        kind = rng.choices(range(4), (6, 8, 2, 3))[0]
        sent = (rng.randint(80, 900), rng.randint(25, 60), rng.randint(200, 4000), rng.randint(300, 9000))[kind]
        want = (rng.randint(200, 60000), rng.randint(40, 400), rng.randint(200, 3000), rng.randint(60, 200))[kind]
        if i % 37 == 0:
            want = 0                                     # a responder that says nothing
        host = f"192.168.1.{100 + rng.randint(0, 9)}"
        if host.endswith("107") and kind == 3:
            sent *= 25                                   # the leaking host
        flows.append((i, kind, host, sent, want))
    return flows


def main():
    t0 = time.time()
    conn_log = Log("conn", ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "service", "duration",
                            "orig_bytes", "resp_bytes", "conn_state", "history"],
                   ["time", "string", "addr", "port", "addr", "port", "enum", "string", "interval", "count", "count", "string", "string"])
    files_log = Log("files", ["ts", "fuid", "uid", "source", "seen_bytes", "sha1", "duration"],
                    ["time", "string", "string", "string", "count", "string", "interval"])
    stats_log = Log("stats", ["ts", "peer", "mem", "pkts_proc", "events_proc"], ["time", "string", "count", "count", "count"])
    sock = socket.create_server(("127.0.0.1", 0), backlog=64)
    port = sock.getsockname()[1]
    flows = plan()
    sensor = f"zeek-{socket.gethostname()}-{os.getpid()}"
    print(f"{t0:.6f} listening on lo (127.0.0.1:{port}), sensor {sensor}")
    server = threading.Thread(target=serve, args=(sock, len(flows)))
    server.start()
    seen, guard = [], threading.Lock()

    def visit(flow):
        number, kind, host, sent, want = flow
        ts, clock = time.time(), time.perf_counter()
        with socket.create_connection(("127.0.0.1", port)) as s:
            local = s.getsockname()[1]
            s.sendall(struct.pack("!BII", kind, number, want) + struct.pack("!I", sent) + b"q" * sent)
            body = recv_all(s, want) if want else recv_all(s, 1)
        took = time.perf_counter() - clock
        time.sleep(0.005)
        cid = uid("C")
        state = "SF" if want else "S1"
        conn_log.write(f"{ts:.6f}", cid, host, local, "10.0.0.5", port, "tcp", SERVICES[kind], f"{took:.6f}", sent, len(body),
                       state, "ShADadFf" if want else "ShADF")
        digest = hashlib.sha1(body).hexdigest()
        if SERVICES[kind] == "http" and body:
            files_log.write(f"{ts:.6f}", uid("F"), cid, "HTTP", len(body), digest, f"{took:.6f}")
        with guard:
            seen.append((number, host, SERVICES[kind], sent, len(body), state, digest, took))
            if len(seen) % 200 == 0:
                mem = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                stats_log.write(f"{time.time():.6f}", sensor, mem, len(seen), len(seen) * 2)
                rate = len(seen) / (time.time() - t0)
                sys.stderr.write(f"{time.time():.6f} {len(seen)} conns, {rate:.1f} conn/s, [{threading.current_thread().name}]\n")

    with ThreadPoolExecutor(6, thread_name_prefix="originator") as pool:
        list(pool.map(visit, flows))
    server.join()
    sock.close()
    seen.sort()
    up, down, states, services = Counter(), Counter(), Counter(), defaultdict(list)
    for number, host, svc, sent, got, state, digest, took in seen:
        up[host] += sent
        down[host] += got
        states[state] += 1
        services[svc].append((sent, got, took))
    print("\nservice   conns  orig_bytes  resp_bytes   mean_duration")
    for svc in SERVICES:
        rows = services[svc]
        print(f"{svc:<8}{len(rows):7d}{sum(r[0] for r in rows):12d}{sum(r[1] for r in rows):12d}   {1000 * sum(r[2] for r in rows) / len(rows):.3f} ms")
    print("\nhost               sent   received   ratio")
    notice = Log("notice", ["ts", "uid", "note", "msg", "src"], ["time", "string", "enum", "string", "addr"])
    typical = sorted(up[h] / down[h] for h in up)[len(up) // 2]
    for host in sorted(up):
        ratio = up[host] / down[host]
        flag = ratio > 4 * typical
        print(f"{host}{up[host]:10d}{down[host]:11d}{ratio:8.3f}{'  <- Exfiltration' if flag else ''}")
        if flag:
            notice.write(f"{time.time():.6f}", uid("C"), "Exfil::Large_Upload", f"upload ratio {ratio:.3f} against {typical:.3f}", host)
    print("\nconn_state " + " ".join(f"{k}={states[k]}" for k in sorted(states)))
    print("payload digest " + hashlib.sha1("".join(r[6] for r in seen).encode()).hexdigest())
    for log in (conn_log, files_log, stats_log, notice):
        log.close()
    print(f"{time.time():.6f} received termination signal, {time.time() - t0:.3f} s on {port}/tcp")


if __name__ == "__main__":
    main()
