"""Facilities of the fuel cycle: mines, plants and reactors."""


class Facility:
    kind = "facility"

    def __init__(self, agent_id, ctx, region):
        self.agent_id = agent_id
        self.ctx = ctx
        self.region = region
        self.stock = 0.0
        self.traded = 0.0
        ctx.register(self)

    def tick(self, t):
        raise NotImplementedError

    def __repr__(self):
        return f"<{self.kind} {self.agent_id}>"


class Mine(Facility):
    kind = "mine"

    def __init__(self, agent_id, ctx, region, capacity):
        super().__init__(agent_id, ctx, region)
        self.capacity = capacity
        self.reserve = capacity * 30.0

    def tick(self, t):
        mined = min(self.capacity, self.reserve)
        self.reserve -= mined
        self.ctx.market("ore", self.region).offer(mined)
        self.traded += mined


class Plant(Facility):
    kind = "plant"

    def __init__(self, agent_id, ctx, region, throughput, loss):
        super().__init__(agent_id, ctx, region)
        self.throughput = throughput
        self.loss = loss

    def tick(self, t):
        got = self.ctx.market("ore", self.region).take(self.throughput)
        self.stock += got * (1.0 - self.loss)
        ship = min(self.stock, self.throughput * 0.9)
        self.stock -= ship
        self.ctx.market("fuel", self.region).offer(ship)
        self.traded += ship


class Reactor(Facility):
    kind = "reactor"

    def __init__(self, agent_id, ctx, region, batch, cycle, offset):
        super().__init__(agent_id, ctx, region)
        self.batch = batch
        self.cycle = cycle
        self.offset = offset
        self.energy = 0.0

    def tick(self, t):
        if (t + self.offset) % self.cycle == 0:
            need = max(0.0, 2 * self.batch - self.stock)
            got = self.ctx.market("fuel", self.region).take(need)
            self.stock += got
            self.traded += got
        burn = min(self.stock, self.batch / self.cycle)
        self.stock -= burn
        self.energy += burn * 1.1
