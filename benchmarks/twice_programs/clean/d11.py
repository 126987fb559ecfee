"""Style of vwxyzjn/cleanrl (cleanrl/ppo.py). Differs in each run: run_name with unix time and so the folder's name, SPS
printed and in TensorBoard (charts/SPS, charts/SPS_update), wall times of the events, host and pid in the event file's name."""
import argparse
import os
import random
import time

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical
from torch.utils.tensorboard import SummaryWriter


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--exp-name", type=str, default=os.path.basename(__file__)[:-len(".py")])
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--env-id", type=str, default="CartPole-v1")
    p.add_argument("--total-timesteps", type=int, default=6144)
    p.add_argument("--learning-rate", type=float, default=2.5e-3)
    p.add_argument("--num-envs", type=int, default=4)
    p.add_argument("--num-steps", type=int, default=128)
    p.add_argument("--gamma", type=float, default=0.99)
    p.add_argument("--gae-lambda", type=float, default=0.95)
    p.add_argument("--num-minibatches", type=int, default=4)
    p.add_argument("--update-epochs", type=int, default=4)
    p.add_argument("--clip-coef", type=float, default=0.2)
    p.add_argument("--ent-coef", type=float, default=0.01)
    p.add_argument("--vf-coef", type=float, default=0.5)
    p.add_argument("--max-grad-norm", type=float, default=0.5)
    args = p.parse_args()
    args.batch_size = args.num_envs * args.num_steps
    args.minibatch_size = args.batch_size // args.num_minibatches
    return args


def layer_init(layer, std=np.sqrt(2), bias=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        mk = lambda out, std: nn.Sequential(layer_init(nn.Linear(n_obs, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(),
                                            layer_init(nn.Linear(64, out), std=std))
        self.critic, self.actor = mk(1, 1.0), mk(n_act, 0.01)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


if __name__ == "__main__":
    args = parse_args()
    run_name = f"{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}"
    writer = SummaryWriter(f"runs/{run_name}")
    writer.add_text("hyperparameters", "|param|value|\n|-|-|\n%s" % ("\n".join([f"|{k}|{v}|" for k, v in vars(args).items()])))
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    envs = [gym.wrappers.RecordEpisodeStatistics(gym.make(args.env_id)) for _ in range(args.num_envs)]
    agent = Agent(4, 2)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    S, N = args.num_steps, args.num_envs
    obs, actions = torch.zeros(S, N, 4), torch.zeros(S, N)
    logprobs, rewards, dones, values = (torch.zeros(S, N) for _ in range(4))
    global_step, start_time = 0, time.time()
    next_obs = torch.tensor(np.stack([e.reset(seed=args.seed + i)[0] for i, e in enumerate(envs)]))
    next_done = torch.zeros(N)
    num_updates = args.total_timesteps // args.batch_size
    returns_log = []
    for update in range(1, num_updates + 1):
        update_start = time.time()
        optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / num_updates) * args.learning_rate
        for step in range(S):
            global_step += N
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step], actions[step], logprobs[step] = value.flatten(), action, logprob
            nxt = []
            for i, env in enumerate(envs):
                o, r, term, trunc, info = env.step(int(action[i]))
                rewards[step, i], next_done[i] = r, float(term or trunc)
                if term or trunc:
                    ep = info["episode"]
                    returns_log.append((global_step, float(ep["r"]), int(ep["l"])))
                    if len(returns_log) % 10 == 0:
                        print(f"global_step={global_step}, episodic_return={float(ep['r'])}, episode_time={float(ep['t']):.6f}s")
                    writer.add_scalar("charts/episodic_return", float(ep["r"]), global_step)
                    writer.add_scalar("charts/episodic_length", int(ep["l"]), global_step)
                    o, _ = env.reset()
                nxt.append(o)
            next_obs = torch.tensor(np.stack(nxt))
        with torch.no_grad():
            next_value = agent.critic(next_obs).reshape(-1)
            advantages, last = torch.zeros_like(rewards), 0
            for t in reversed(range(S)):
                nonterm = 1.0 - (next_done if t == S - 1 else dones[t + 1])
                nv = next_value if t == S - 1 else values[t + 1]
                delta = rewards[t] + args.gamma * nv * nonterm - values[t]
                advantages[t] = last = delta + args.gamma * args.gae_lambda * nonterm * last
            returns = advantages + values
        b_obs, b_lp, b_act = obs.reshape(-1, 4), logprobs.reshape(-1), actions.reshape(-1)
        b_adv, b_ret = advantages.reshape(-1), returns.reshape(-1)
        b_inds, clipfracs = np.arange(args.batch_size), []
        for _ in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for s in range(0, args.batch_size, args.minibatch_size):
                mb = b_inds[s:s + args.minibatch_size]
                _, newlp, entropy, newv = agent.get_action_and_value(b_obs[mb], b_act[mb])
                ratio = (newlp - b_lp[mb]).exp()
                adv = (b_adv[mb] - b_adv[mb].mean()) / (b_adv[mb].std() + 1e-8)
                clipfracs.append(((ratio - 1.0).abs() > args.clip_coef).float().mean().item())
                pg = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)).mean()
                vl = 0.5 * ((newv.view(-1) - b_ret[mb]) ** 2).mean()
                loss = pg - args.ent_coef * entropy.mean() + args.vf_coef * vl
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
        writer.add_scalar("losses/value_loss", vl.item(), global_step)
        writer.add_scalar("losses/policy_loss", pg.item(), global_step)
        writer.add_scalar("losses/clipfrac", np.mean(clipfracs), global_step)
        print("SPS:", int(global_step / (time.time() - start_time)))
        writer.add_scalar("charts/SPS", int(global_step / (time.time() - start_time)), global_step)
        writer.add_scalar("charts/SPS_update", int(N * S / (time.time() - update_start)), global_step)
    model_path = f"runs/{run_name}/{args.exp_name}.cleanrl_model"
    torch.save(agent.state_dict(), model_path)
    print(f"model saved to {model_path}")
    print(f"final mean return of the last 10 episodes: {np.mean([r for _, r, _ in returns_log[-10:]]):.2f}, value loss {vl.item():.6f}")
    writer.close()
