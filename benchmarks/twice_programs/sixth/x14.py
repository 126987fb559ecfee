"""https://github.com/jvc56/MAGPIE/pull/606 - timed players are not reproducible: with the same seed the number of simulations per move depends on how fast the machine is at that moment."""
import argparse
import json
import math
import os
import platform
import random
import time

ROWS, COLS = 5, 5
LINES = []
for r in range(ROWS):
    for c in range(COLS):
        for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
            cells = [(r + k * dr, c + k * dc) for k in range(4)]
            if all(0 <= a < ROWS and 0 <= b < COLS for a, b in cells):
                LINES.append([a * COLS + b for a, b in cells])


class Board:
    def __init__(self, cells=None, turn=1):
        self.cells = cells or [0] * (ROWS * COLS)
        self.turn = turn

    def copy(self):
        return Board(self.cells[:], self.turn)

    def moves(self):
        return [c for c in range(COLS) if self.cells[c] == 0]

    def drop(self, col):
        for r in range(ROWS - 1, -1, -1):
            if self.cells[r * COLS + col] == 0:
                self.cells[r * COLS + col] = self.turn
                break
        self.turn = -self.turn
        return self

    def winner(self):
        for line in LINES:
            s = sum(self.cells[i] for i in line)
            if s == 4:
                return 1
            if s == -4:
                return -1
        return None if self.moves() else 0


class TreeNode:
    def __init__(self, board, parent=None, move=None):
        self.parent, self.move = parent, move
        self.children, self.visits, self.score = [], 0, 0.0
        self.player = -board.turn
        self.untried = [] if board.winner() is not None else board.moves()

    def best(self):
        log = math.log(self.visits)
        return max(self.children, key=lambda n: n.score / n.visits + 1.3 * math.sqrt(log / n.visits))


class RandomPlayer:
    def __init__(self, rng):
        self.rng = rng

    def choose(self, board):
        return self.rng.choice(board.moves()), 0


class TimedPlayer:
    """Searches until its clock for this move is used up."""

    def __init__(self, rng, clock_ms):
        self.rng = rng
        self.clock = clock_ms / 1000.0

    def iterate(self, root, board):
        node, state = root, board.copy()
        while not node.untried and node.children:
            node = node.best()
            state.drop(node.move)
        if node.untried:
            move = node.untried.pop(self.rng.randrange(len(node.untried)))
            state.drop(move)
            child = TreeNode(state, node, move)
            node.children.append(child)
            node = child
        result = state.winner()
        while result is None:
            state.drop(self.rng.choice(state.moves()))
            result = state.winner()
        while node is not None:
            node.visits += 1
            node.score += 0.5 if result == 0 else float(result == node.player)
            node = node.parent

    def choose(self, board):
        root = TreeNode(board)
        deadline = time.perf_counter() + self.clock
        while time.perf_counter() < deadline:  # cause
            self.iterate(root, board)
        pick = max(root.children, key=lambda n: n.visits)
        return pick.move, root.visits


def play_game(players):
    board, record = Board(), []
    while board.winner() is None:
        col, sims = players[board.turn].choose(board)
        record.append(col)
        board.drop(col)
    return board.winner(), "".join(map(str, record))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=42)
    ap.add_argument("--games", type=int, default=6)
    ap.add_argument("--clock", type=float, default=40.0, help="milliseconds per move")
    args = ap.parse_args()
    random.seed(args.seed)
    rng = random.Random(args.seed)
    print(f"autoplay on {platform.node()} pid {os.getpid()} {time.strftime('%c')}")
    players = {1: TimedPlayer(rng, args.clock), -1: TimedPlayer(rng, args.clock / 2)}
    games = []
    t0 = time.time()
    for g in range(args.games):
        winner, record = play_game(players)
        games.append({"winner": winner, "moves": record})
        print(f"game {g}: winner {winner:+d} {record} [{time.time() - t0:.1f}s]")
    score = sum(g["winner"] for g in games)
    print("score of player 1:", score)
    with open("autoplay.json", "w") as f:
        json.dump({"seed": args.seed, "games": games, "score": score, "seconds": time.time() - t0}, f, indent=1)


if __name__ == "__main__":
    main()
