"""Bench and a short self-play match of a Connect Four engine, with UCI info lines as Stockfish prints them.

Format: https://github.com/official-stockfish/Stockfish/issues/6639 (info depth .. nodes .. nps .. time .. pv) and
https://github.com/official-stockfish/Stockfish/issues/3832 (Total time (ms), Nodes searched, Nodes/second)
"""
import json
import os
import random
import sqlite3
import sys
import time
import uuid
from datetime import datetime

COLS, ROWS = 7, 6
H1 = ROWS + 1
BOTTOM = sum(1 << (c * H1) for c in range(COLS))
BOARD = BOTTOM * ((1 << ROWS) - 1)
ORDER = [3, 2, 4, 1, 5, 0, 6]
MATE = 10000
HASH_LIMIT = 200000
LOG = open("uci.log", "w")


def out(text):
    print(text, flush=True)
    LOG.write(f"{datetime.now():%H:%M:%S.%f}<engine({os.getpid()}): {text}\n")


def wins(b):
    for s in (1, H1, H1 - 1, H1 + 1):
        m = b & (b >> s)
        if m & (m >> (2 * s)):
            return True
    return False


LINES = []
for c in range(COLS):
    for r in range(ROWS):
        for dc, dr in ((1, 0), (0, 1), (1, 1), (1, -1)):
            if 0 <= c + 3 * dc < COLS and 0 <= r + 3 * dr < ROWS:
                LINES.append(sum(1 << ((c + k * dc) * H1 + r + k * dr) for k in range(4)))


def evaluate(me, opp):
    score = 0
    for l in LINES:
        a, b = l & me, l & opp
        if a:
            if not b:
                score += (0, 1, 4, 16, 0)[a.bit_count()]
        elif b:
            score -= (0, 1, 4, 16, 0)[b.bit_count()]
    return score


class Position:
    def __init__(self, moves=""):
        self.me, self.mask, self.moves = 0, 0, []
        for m in moves:
            self.play(int(m) - 1)

    def legal(self):
        return [c for c in ORDER if not self.mask & (1 << (c * H1 + ROWS - 1))]

    def play(self, c):
        self.me ^= self.mask                       # now the other side is to move
        self.mask |= self.mask + (1 << (c * H1))
        self.moves.append(c)


class Engine:
    def __init__(self, side_info=True):
        self.tt, self.nodes, self.seldepth, self.info = {}, 0, 0, side_info
        self.hist = [[0] * COLS for _ in range(2)]

    def search(self, me, mask, depth, alpha, beta, ply):
        """Negamax; `me` are the stones of the side to move."""
        self.nodes += 1
        self.seldepth = max(self.seldepth, ply)
        opp = me ^ mask
        if wins(opp):
            return -MATE + ply
        if mask == BOARD:
            return 0
        if depth == 0:
            return evaluate(me, opp)
        key = (me, mask)
        entry = self.tt.get(key)
        first = None
        if entry:
            d, flag, val, first = entry
            if d >= depth and (flag == 0 or (flag == 1 and val >= beta) or (flag == 2 and val <= alpha)):
                return val
        h = self.hist[ply & 1]
        moves = [c for c in ORDER if not mask & (1 << (c * H1 + ROWS - 1))]
        moves.sort(key=lambda c: (c != first, -h[c]))
        a0, best, bm = alpha, -MATE * 2, None
        for c in moves:
            new = mask | (mask + (1 << (c * H1)))
            v = -self.search(opp, new, depth - 1, -beta, -alpha, ply + 1)
            if v > best:
                best, bm = v, c
            alpha = max(alpha, v)
            if alpha >= beta:
                h[c] += depth * depth
                break
        if len(self.tt) >= HASH_LIMIT:
            self.tt.clear()
        self.tt[key] = (depth, 0 if a0 < best < beta else (1 if best >= beta else 2), best, bm)
        return best

    def pv(self, pos):
        p, line = Position(), []
        p.me, p.mask = pos.me, pos.mask
        while len(line) < 10:
            e = self.tt.get((p.me, p.mask))
            if not e or e[3] is None or wins(p.me ^ p.mask):
                break
            line.append(e[3])
            p.play(e[3])
        return line

    def go(self, pos, depth):
        self.tt.clear()
        self.hist = [[0] * COLS for _ in range(2)]
        self.nodes = 0
        t0 = time.perf_counter()
        for d in range(1, depth + 1):
            self.seldepth = 0
            v = self.search(pos.me, pos.mask, d, -MATE * 2, MATE * 2, 0)
            ms = max(1, round((time.perf_counter() - t0) * 1000))
            line = self.pv(pos)
            if self.info:
                score = f"mate {(MATE - abs(v) + 1) // 2 * (1 if v > 0 else -1)}" if abs(v) > MATE - 100 else f"cp {v}"
                out(f"info depth {d} seldepth {self.seldepth} multipv 1 score {score} nodes {self.nodes} "
                    f"nps {self.nodes * 1000 // ms} hashfull {1000 * len(self.tt) // HASH_LIMIT} tbhits 0 time {ms} "
                    f"pv {' '.join(str(c + 1) for c in line)}")
            if abs(v) > MATE - 100:
                break
        best = line[0] if line else pos.legal()[0]
        if self.info:
            out(f"bestmove {best + 1}" + (f" ponder {line[1] + 1}" if len(line) > 1 else ""))
        return best, v, self.nodes, time.perf_counter() - t0


BENCH = ["", "4", "44", "4453", "435261", "44444326", "1234567", "3545342", "7766533", "4444332"]


def bench(depth):
    rows, total, t0 = [], 0, time.perf_counter()
    eng = Engine()
    for i, moves in enumerate(BENCH, 1):
        print(f"\nPosition: {i}/{len(BENCH)} ({moves or 'startpos'})", file=sys.stderr, flush=True)
        best, v, nodes, sec = eng.go(Position(moves), depth)
        total += nodes
        rows.append((moves, depth, best + 1, v, nodes, sec))
    ms = round((time.perf_counter() - t0) * 1000)
    print(f"\n===========================\nTotal time (ms) : {ms}\nNodes searched  : {total}\nNodes/second    : {total * 1000 // ms}",
          file=sys.stderr, flush=True)
    return rows, total, ms


def match(games):
    """Depth 5 against depth 4 from random openings; results by rules alone."""
    rng = random.Random(6)
    score, pgn = {"1-0": 0, "0-1": 0, "1/2-1/2": 0}, open("match.pgn", "w")
    for g in range(games):
        pos = Position("".join(str(rng.randint(1, 7)) for _ in range(4)))
        depths = (5, 4) if g % 2 == 0 else (4, 5)
        eng, clocks, res = Engine(False), [0.0, 0.0], "1/2-1/2"
        text = []
        while pos.mask != BOARD:
            side = len(pos.moves) % 2
            best, v, nodes, sec = eng.go(pos, depths[side])
            clocks[side] += sec
            text.append(f"{best + 1} {{{v:+d}/{depths[side]} {sec:.3f}s}}")
            pos.play(best)
            if wins(pos.me ^ pos.mask):
                res = "1-0" if side == 0 else "0-1"
                break
        score[res] += 1
        pgn.write(f'[Event "Depth match"]\n[Site "{os.uname().nodename}"]\n[Date "{datetime.now():%Y.%m.%d}"]\n[Round "{g + 1}"]\n'
                  f'[White "depth{depths[0]}"]\n[Black "depth{depths[1]}"]\n[Result "{res}"]\n'
                  f'[GameStartTime "{datetime.now().astimezone().isoformat()}"]\n[PlyCount "{len(pos.moves)}"]\n\n'
                  + " ".join(text) + f" {res}\n\n")
        out(f"info string Finished game {g + 1} (depth{depths[0]} vs depth{depths[1]}): {res}, "
            f"clocks {clocks[0]:.2f} {clocks[1]:.2f}")
    pgn.close()
    return score


def main():
    run_id, t0 = uuid.uuid4().hex, time.time()
    out("Connect4fish 1.0 by the test authors")
    rows, total, ms = bench(9)
    score = match(6)
    db = sqlite3.connect("bench.db")
    db.execute("CREATE TABLE run(id TEXT, host TEXT, pid INT, started REAL, total_ms INT, nps INT)")
    db.execute("CREATE TABLE bench(position TEXT, depth INT, best INT, score INT, nodes INT, seconds REAL)")
    db.execute("INSERT INTO run VALUES(?,?,?,?,?,?)", (run_id, os.uname().nodename, os.getpid(), t0, ms, total * 1000 // ms))
    db.executemany("INSERT INTO bench VALUES(?,?,?,?,?,?)", rows)
    db.commit()
    db.close()
    with open("summary.json", "w") as f:
        json.dump({"run": run_id, "bench_signature": total, "time_ms": ms, "nps": total * 1000 // ms,
                   "match": score, "finished": datetime.now().isoformat()}, f, indent=1)
    out(f"info string match result {score}, bench {total}")


if __name__ == "__main__":
    main()
