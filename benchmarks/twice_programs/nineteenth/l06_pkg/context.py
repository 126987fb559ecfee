"""Markets and the timer that drives all registered facilities."""


class Market:
    def __init__(self, commodity, region):
        self.commodity = commodity
        self.region = region
        self.level = 0.0
        self.unmet = 0.0

    def offer(self, qty):
        self.level += qty

    def take(self, qty):
        got = min(qty, self.level)
        self.level -= got
        self.unmet += qty - got
        return got


class Context:
    def __init__(self):
        self.agents = {}
        self.listeners = set()
        self.markets = {}

    def register(self, agent):
        self.agents[agent.agent_id] = agent
        self.listeners.add(agent)

    def market(self, commodity, region):
        key = (commodity, region)
        if key not in self.markets:
            self.markets[key] = Market(commodity, region)
        return self.markets[key]


class Timer:
    def __init__(self, ctx):
        self.ctx = ctx
        self.history = []

    def step(self, t):
        for agent in self.ctx.listeners:  # cause
            agent.tick(t)
        ore = sum(m.level for k, m in sorted(self.ctx.markets.items()) if k[0] == "ore")
        fuel = sum(m.level for k, m in sorted(self.ctx.markets.items()) if k[0] == "fuel")
        unmet = sum(m.unmet for _, m in sorted(self.ctx.markets.items()))
        self.history.append((t, round(ore, 4), round(fuel, 4), round(unmet, 4)))

    def run(self, steps):
        for t in range(steps):
            self.step(t)
        return self.history
