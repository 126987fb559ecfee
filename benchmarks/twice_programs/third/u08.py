# d3rlpy#419: the environment of training is seeded, the one of the evaluation is not
import gymnasium
import numpy as np
import torch
from mill.config import parse
from mill.journal import Journal
from mill.loop import seed_all
from mill.nets import Mlp

class Agent:
    def __init__(self, config):
        self.model = Mlp(4, config.width, 2, drop=0.0)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.lr)

    def act(self, state):
        with torch.no_grad():
            return int(self.model(torch.as_tensor(state, dtype=torch.float32)).argmax())

    def learn(self, states, actions, weights):
        loss = (torch.nn.functional.cross_entropy(self.model(states), actions, reduction="none") * weights).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

def episode(env, agent, explore, seed):
    state, _ = env.reset(seed=seed)
    states, actions, done = [], [], False
    while not done and len(states) < 60:
        action = agent.act(state) if np.random.rand() > explore else int(np.random.randint(2))
        states.append(state)
        actions.append(action)
        state, _, ended, cut, _ = env.step(action)
        done = ended or cut
    return np.array(states, np.float32), np.array(actions)

def evaluate(agent, rounds=3):
    env, total = gymnasium.make("CartPole-v1"), []
    for _ in range(rounds):
        state, _ = env.reset()  # cause
        angle = 0.0
        for _ in range(40):
            state, _, done, _, _ = env.step(agent.act(state))
            angle += abs(float(state[2]))
            if done:
                break
        total.append(angle)
    return float(np.mean(total))

def main():
    config = parse(name="cartpole", seed=3)
    seed_all(config.seed)
    journal, agent, env = Journal(config), Agent(config), gymnasium.make("CartPole-v1")
    for n in range(4):
        states, actions = episode(env, agent, 0.5, config.seed + n)
        weights = torch.linspace(1, 0, len(states))
        journal.row(episode=n, loss=agent.learn(torch.from_numpy(states), torch.from_numpy(actions), weights))
    score = evaluate(agent)
    journal.close(score=score)

main()
