"""PPO on CartPole.

Modelled on vwxyzjn/cleanrl cleanrl/ppo.py: run_name = f"{env}__{exp}__{seed}__{int(time.time())}",
SummaryWriter under runs/, "global_step=..., episodic_return=..." and "SPS: ..." prints,
charts/SPS scalars, saved .cleanrl_model and an evaluation at the end.
"""
import os
import random
import time
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.categorical import Categorical
from torch.utils.tensorboard import SummaryWriter


@dataclass
class Args:
    exp_name: str = os.path.basename(__file__)[: -len('.py')]
    seed: int = 1
    torch_deterministic: bool = True
    env_id: str = 'CartPole-v1'
    total_timesteps: int = 8192
    learning_rate: float = 1e-3
    num_envs: int = 4
    num_steps: int = 128
    anneal_lr: bool = True
    gamma: float = 0.99
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    save_model: bool = True


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 64)), nn.Tanh(), layer_init(nn.Linear(64, 64)), nn.Tanh(), layer_init(nn.Linear(64, 2), std=0.01))

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


if __name__ == '__main__':
    args = Args()
    batch_size = args.num_envs * args.num_steps
    minibatch_size = batch_size // args.num_minibatches
    num_iterations = args.total_timesteps // batch_size
    run_name = f'{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}'
    writer = SummaryWriter(f'runs/{run_name}')
    writer.add_text('hyperparameters', '|param|value|\n|-|-|\n%s' % ('\n'.join([f'|{k}|{v}|' for k, v in vars(args).items()])))
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.backends.cudnn.deterministic = args.torch_deterministic
    envs = gym.vector.SyncVectorEnv([lambda: gym.wrappers.RecordEpisodeStatistics(gym.make(args.env_id)) for _ in range(args.num_envs)])
    agent = Agent()
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    obs = torch.zeros((args.num_steps, args.num_envs, 4))
    actions, logprobs, rewards, dones, values = (torch.zeros((args.num_steps, args.num_envs)) for _ in range(5))

    global_step = 0
    start_time = time.time()
    next_obs, _ = envs.reset(seed=args.seed)
    next_obs, next_done = torch.Tensor(next_obs), torch.zeros(args.num_envs)
    for iteration in range(1, num_iterations + 1):
        if args.anneal_lr:
            optimizer.param_groups[0]['lr'] = (1.0 - (iteration - 1.0) / num_iterations) * args.learning_rate
        for step in range(args.num_steps):
            global_step += args.num_envs
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
                values[step] = value.flatten()
            actions[step], logprobs[step] = action, logprob
            o, reward, term, trunc, infos = envs.step(action.numpy())
            rewards[step] = torch.tensor(reward, dtype=torch.float32)
            next_obs, next_done = torch.Tensor(o), torch.Tensor(np.logical_or(term, trunc))
            if 'episode' in infos:
                for i in np.where(infos['_episode'])[0]:
                    print(f"global_step={global_step}, episodic_return={infos['episode']['r'][i]}")
                    writer.add_scalar('charts/episodic_return', infos['episode']['r'][i], global_step)
                    writer.add_scalar('charts/episodic_length', infos['episode']['l'][i], global_step)
        with torch.no_grad():
            next_value = agent.critic(next_obs).reshape(1, -1)
            advantages, lastgaelam = torch.zeros_like(rewards), 0
            for t in reversed(range(args.num_steps)):
                nonterminal = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
                nextvalues = next_value if t == args.num_steps - 1 else values[t + 1]
                delta = rewards[t] + args.gamma * nextvalues * nonterminal - values[t]
                advantages[t] = lastgaelam = delta + args.gamma * args.gae_lambda * nonterminal * lastgaelam
            returns = advantages + values
        b_obs, b_logprobs, b_actions = obs.reshape(-1, 4), logprobs.reshape(-1), actions.reshape(-1)
        b_advantages, b_returns, b_values = advantages.reshape(-1), returns.reshape(-1), values.reshape(-1)
        b_inds, clipfracs = np.arange(batch_size), []
        for epoch in range(args.update_epochs):
            np.random.shuffle(b_inds)
            for start in range(0, batch_size, minibatch_size):
                mb = b_inds[start:start + minibatch_size]
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions.long()[mb])
                logratio = newlogprob - b_logprobs[mb]
                ratio = logratio.exp()
                with torch.no_grad():
                    approx_kl = ((ratio - 1) - logratio).mean()
                    clipfracs += [((ratio - 1.0).abs() > args.clip_coef).float().mean().item()]
                adv = (b_advantages[mb] - b_advantages[mb].mean()) / (b_advantages[mb].std() + 1e-8)
                pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - args.clip_coef, 1 + args.clip_coef)).mean()
                v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb]) ** 2).mean()
                loss = pg_loss - args.ent_coef * entropy.mean() + v_loss * args.vf_coef
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
        y_pred, y_true = b_values.numpy(), b_returns.numpy()
        explained_var = np.nan if np.var(y_true) == 0 else 1 - np.var(y_true - y_pred) / np.var(y_true)
        for tag, v in (('charts/learning_rate', optimizer.param_groups[0]['lr']), ('losses/value_loss', v_loss.item()), ('losses/policy_loss', pg_loss.item()),
                       ('losses/entropy', entropy.mean().item()), ('losses/approx_kl', approx_kl.item()), ('losses/clipfrac', np.mean(clipfracs)),
                       ('losses/explained_variance', explained_var)):
            writer.add_scalar(tag, v, global_step)
        print('SPS:', int(global_step / (time.time() - start_time)))
        writer.add_scalar('charts/SPS', int(global_step / (time.time() - start_time)), global_step)

    if args.save_model:
        model_path = f'runs/{run_name}/{args.exp_name}.cleanrl_model'
        torch.save(agent.state_dict(), model_path)
        print(f'model saved to {model_path}')
        env = gym.make(args.env_id)
        for idx in range(5):
            o, _ = env.reset(seed=1000 + idx)
            ret, done = 0.0, False
            while not done:
                with torch.no_grad():
                    a, _, _, _ = agent.get_action_and_value(torch.Tensor(o).unsqueeze(0))
                o, r, term, trunc, _ = env.step(a.item())
                ret, done = ret + r, term or trunc
            print(f'eval_episode={idx}, episodic_return={ret}')
            writer.add_scalar('eval/episodic_return', ret, idx)
    envs.close()
    writer.close()
