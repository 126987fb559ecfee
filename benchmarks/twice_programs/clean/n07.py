"""REINFORCE with baseline on CartPole-v1 (gymnasium), CleanRL-style single file.

Scalars go to TensorBoard; `charts/SPS` and wall-clock are the only time based values.
"""
import csv
import os
import random
import time
from dataclasses import asdict, dataclass

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical
from torch.utils.tensorboard import SummaryWriter


@dataclass
class Args:
    exp_name: str = "reinforce"
    env_id: str = "CartPole-v1"
    seed: int = 1
    torch_deterministic: bool = True
    num_updates: int = 25
    episodes_per_update: int = 4
    gamma: float = 0.99
    policy_lr: float = 5e-3
    value_lr: float = 1e-2
    ent_coef: float = 0.01
    eval_episodes: int = 10


class Agent(nn.Module):
    def __init__(self, obs_dim, n_actions, hidden=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, n_actions))
        self.critic = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def dist(self, obs):
        return Categorical(logits=self.actor(obs))

    def value(self, obs):
        return self.critic(obs).squeeze(-1)


def rollout(env, agent):
    obs, _ = env.reset()
    observations, actions, rewards = [], [], []
    done = False
    while not done:
        o = torch.as_tensor(obs, dtype=torch.float32)
        with torch.no_grad():
            a = agent.dist(o).sample()
        observations.append(o)
        actions.append(a)
        obs, r, terminated, truncated, _ = env.step(a.item())
        rewards.append(r)
        done = terminated or truncated
    return torch.stack(observations), torch.stack(actions), rewards


def discounted(rewards, gamma):
    out, g = np.zeros(len(rewards), dtype=np.float32), 0.0
    for t in reversed(range(len(rewards))):
        g = rewards[t] + gamma * g
        out[t] = g
    return torch.from_numpy(out)


def evaluate(agent, args):
    env = gym.make(args.env_id)
    returns = []
    for ep in range(args.eval_episodes):
        obs, _ = env.reset(seed=10_000 + ep)
        total, done = 0.0, False
        while not done:
            with torch.no_grad():
                a = agent.actor(torch.as_tensor(obs, dtype=torch.float32)).argmax().item()
            obs, r, terminated, truncated, _ = env.step(a)
            total += r
            done = terminated or truncated
        returns.append(total)
    env.close()
    return returns


def main():
    args = Args()
    run_name = f"{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}"
    writer = SummaryWriter(f"runs/{run_name}")
    writer.add_text("hyperparameters", "|param|value|\n|-|-|\n" +
                    "\n".join(f"|{k}|{v}|" for k, v in asdict(args).items()))
    print(f"run: {run_name}")

    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = args.torch_deterministic

    env = gym.wrappers.RecordEpisodeStatistics(gym.make(args.env_id))
    env.reset(seed=args.seed)
    env.action_space.seed(args.seed)
    agent = Agent(env.observation_space.shape[0], env.action_space.n)
    opt_pi = torch.optim.Adam(agent.actor.parameters(), lr=args.policy_lr)
    opt_v = torch.optim.Adam(agent.critic.parameters(), lr=args.value_lr)

    os.makedirs("results", exist_ok=True)
    f = open("results/progress.csv", "w", newline="")
    log = csv.DictWriter(f, ["update", "global_step", "ep_return", "policy_loss", "value_loss",
                             "entropy", "wall_time"])
    log.writeheader()
    global_step, start = 0, time.time()
    for update in range(1, args.num_updates + 1):
        batch = [rollout(env, agent) for _ in range(args.episodes_per_update)]
        obs = torch.cat([b[0] for b in batch])
        act = torch.cat([b[1] for b in batch])
        ret = torch.cat([discounted(b[2], args.gamma) for b in batch])
        ep_return = float(np.mean([sum(b[2]) for b in batch]))
        global_step += len(obs)

        values = agent.value(obs)
        adv = ret - values.detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        dist = agent.dist(obs)
        entropy = dist.entropy().mean()
        policy_loss = -(dist.log_prob(act) * adv).mean() - args.ent_coef * entropy
        value_loss = nn.functional.mse_loss(values, ret)
        opt_pi.zero_grad()
        policy_loss.backward()
        opt_pi.step()
        opt_v.zero_grad()
        value_loss.backward()
        opt_v.step()

        sps = int(global_step / (time.time() - start))
        writer.add_scalar("charts/episodic_return", ep_return, global_step)
        writer.add_scalar("losses/policy_loss", policy_loss.item(), global_step)
        writer.add_scalar("losses/value_loss", value_loss.item(), global_step)
        writer.add_scalar("losses/entropy", entropy.item(), global_step)
        writer.add_scalar("charts/SPS", sps, global_step)
        log.writerow({"update": update, "global_step": global_step, "ep_return": ep_return,
                      "policy_loss": policy_loss.item(), "value_loss": value_loss.item(),
                      "entropy": entropy.item(), "wall_time": time.time()})
        print(f"update={update:3d} global_step={global_step:6d} episodic_return={ep_return:.2f} "
              f"v_loss={value_loss.item():.3f} SPS: {sps}")
    f.close()

    returns = evaluate(agent, args)
    np.savetxt("results/eval_returns.txt", returns, fmt="%.1f")
    print(f"eval mean return: {np.mean(returns):.2f} +/- {np.std(returns):.2f}")
    writer.add_scalar("eval/mean_return", np.mean(returns), global_step)
    torch.save(agent.state_dict(), f"runs/{run_name}/{args.exp_name}.pt")
    env.close()
    writer.close()


if __name__ == "__main__":
    main()
