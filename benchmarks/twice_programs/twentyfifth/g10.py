"""Analyses a suite of Connect Four positions with an alpha-beta engine.

Each position is searched by iterative deepening; the best move, its score, the
depth and the node count go to a table and to analysis.csv, as the annotator
for test suites does it.

Modelled on: https://github.com/fsmosca/chess-artist/issues/45
"""
import csv
import random
import time

WIDTH, HEIGHT = 7, 6
ORDER = [3, 2, 4, 1, 5, 0, 6]
WIN = 10000
MOVETIME = 0.35
MAX_DEPTH = 20
SUITE = 14


class SearchStopped(Exception):
    pass


class Board:
    """Bitboards of both players; a column takes seven bits."""

    def __init__(self):
        self.players = [0, 0]
        self.heights = [7 * c for c in range(WIDTH)]
        self.moves = []

    def legal(self):
        return [c for c in ORDER if self.heights[c] < 7 * c + HEIGHT]

    def play(self, col):
        self.players[len(self.moves) & 1] ^= 1 << self.heights[col]
        self.heights[col] += 1
        self.moves.append(col)

    def undo(self):
        col = self.moves.pop()
        self.heights[col] -= 1
        self.players[len(self.moves) & 1] ^= 1 << self.heights[col]

    def just_won(self):
        bits = self.players[(len(self.moves) - 1) & 1]
        for shift in (1, 6, 7, 8):
            pair = bits & (bits >> shift)
            if pair & (pair >> (2 * shift)):
                return True
        return False

    def evaluate(self):
        """Pairs and triples of the side to move minus those of the other."""
        me = len(self.moves) & 1
        total = 0
        for sign, bits in ((1, self.players[me]), (-1, self.players[me ^ 1])):
            for shift, worth in ((1, 2), (6, 3), (7, 3), (8, 3)):
                pair = bits & (bits >> shift)
                total += sign * worth * bin(pair).count("1")
                total += sign * 4 * worth * bin(pair & (pair >> shift)).count("1")
        return total


class Engine:
    def __init__(self):
        self.table = {}
        self.nodes = 0
        self.deadline = 0.0

    def stop_now(self):
        return time.perf_counter() > self.deadline  # cause

    def search(self, board, depth, alpha, beta):
        self.nodes += 1
        if self.nodes % 64 == 0 and self.stop_now():
            raise SearchStopped
        if board.moves and board.just_won():
            return -(WIN - len(board.moves))
        legal = board.legal()
        if not legal:
            return 0
        if depth == 0:
            return board.evaluate()
        key = (board.players[0], board.players[1])
        hint = self.table.get(key)
        if hint in legal:
            legal.remove(hint)
            legal.insert(0, hint)
        best, best_move = -WIN * 2, legal[0]
        for col in legal:
            board.play(col)
            try:
                value = -self.search(board, depth - 1, -beta, -alpha)
            finally:
                board.undo()
            if value > best:
                best, best_move = value, col
            alpha = max(alpha, value)
            if alpha >= beta:
                break
        self.table[key] = best_move
        return best

    def analyse(self, board):
        self.table.clear()
        self.nodes = 0
        self.deadline = time.perf_counter() + MOVETIME
        result = {"move": board.legal()[0], "score": 0, "depth": 0}
        for depth in range(1, MAX_DEPTH + 1):
            try:
                score = self.search(board, depth, -WIN * 2, WIN * 2)
            except SearchStopped:
                break
            move = self.table[(board.players[0], board.players[1])]
            result = {"move": move, "score": score, "depth": depth}
            if abs(score) > WIN // 2:
                break
        result["nodes"] = self.nodes
        return result


def make_suite(seed):
    """Quiet positions after six to nine random moves."""
    rng = random.Random(seed)
    suite = []
    while len(suite) < SUITE:
        board = Board()
        for _ in range(rng.randrange(6, 10)):
            board.play(rng.choice(board.legal()))
            if board.just_won():
                break
        else:
            suite.append(board)
    return suite


def main():
    began = time.time()
    engine = Engine()
    rows = []
    for number, board in enumerate(make_suite(seed=77), start=1):
        result = engine.analyse(board)
        position = "".join(str(c + 1) for c in board.moves)
        rows.append([number, position, result["move"] + 1, result["score"], result["depth"],
                     result["nodes"]])
        print(f"{number:2d}  {position:14s} best {result['move'] + 1}  score {result['score']:6d}"
              f"  depth {result['depth']:2d}  nodes {result['nodes']}")
    with open("analysis.csv", "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["number", "position", "best", "score", "depth", "nodes"])
        writer.writerows(rows)
    print(f"total nodes {sum(r[5] for r in rows)}, mean depth {sum(r[4] for r in rows) / len(rows):.2f}")
    print(f"{time.time() - began:.1f} s for {len(rows)} positions")


if __name__ == "__main__":
    main()
