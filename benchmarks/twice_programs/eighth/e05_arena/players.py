import torch


class RandomPlayer:
    def choose(self, state, me, rng):
        return rng.choice(state.free())


class GreedyPlayer:
    def __init__(self, slip=0.2):
        self.slip = slip

    def choose(self, state, me, rng):
        free = state.free()
        if rng.random() < self.slip:
            return rng.choice(free)
        return max(free, key=lambda i: (state.value[i], -i))


class ValuePlayer:
    def __init__(self, net):
        self.net = net

    def choose(self, state, me, rng):
        free = state.free()
        rows = []
        for i in free:
            state.owner[i] = me
            rows.append(state.features(me))
            state.owner[i] = -1
        with torch.no_grad():
            scores = self.net(torch.tensor(rows)).squeeze(1)
        return free[int(scores.argmax())]
