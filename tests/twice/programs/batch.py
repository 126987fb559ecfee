"""Models whose rows depend on their batch, or not; the lines that make it so are marked."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


class AttentionOverBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(32, 32)

    def forward(self, x):
        keys = self.key(x)
        return torch.softmax(keys @ keys.T, -1) @ keys  # first: attention_over_batch


class SharedScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))

    def forward(self, x):
        scale = x.abs().max() / 127  # first: shared_scale
        return (x / scale).round() * scale * self.weight


class Masked(nn.Module):
    """The largest over the places that the mask has; ``leak`` forgets to leave out the others."""

    def __init__(self, leak=False):
        super().__init__()
        self.leak = leak
        self.embedding = nn.Embedding(100, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, ids, attention_mask=None):
        hidden = self.norm(self.embedding(ids))
        if attention_mask is None or self.leak:
            return {"pooled": hidden.sum(1) / ids.shape[1], "hidden": hidden}
        hidden_or_none = hidden.masked_fill(attention_mask[..., None] == 0, float("-inf"))
        return {"pooled": hidden_or_none.amax(1), "hidden": hidden}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.embedding = nn.Embedding(100, 64)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, ids, padding_mask):
        return self.encoder(self.embedding(ids), src_key_padding_mask=padding_mask)  # first: fast_path


class Keeps(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.last = 0

    def forward(self, x):
        self.last = self.last * 0.5 + x  # first: state
        return self.norm(self.last)


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)

    def forward(self, x, mask):
        places = x.shape[1]
        return (self.norm(x)[:, None] + mask.view(places, places)[None, :, :, None]).amax(2)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(32, 32)

    def forward(self, x, memory):
        return torch.softmax(self.query(x) @ memory.T, -1) @ memory


class Places(nn.Module):
    """Answers with a row for each place of each sequence, and with a sum of all."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.embedding = nn.Embedding(50, 16)

    def forward(self, ids):
        return self.norm(self.embedding(ids)).transpose(0, 1).reshape(-1, 16), ids.sum()


class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        if len(x) not in (1, 2, 4):
            raise ValueError("only 1, 2 or 4 rows")
        return self.norm(x)


LENGTHS = torch.tensor([10, 7, 3, 5, 9, 2])
IDS = torch.randint(0, 100, (6, 10))
REAL = torch.arange(10)[None] < LENGTHS[:, None]


def sizes():
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).eval()
    model(torch.randn(8, 64))  # first: sizes


def rows():
    nn.Sequential(nn.LayerNorm(64), nn.ReLU()).eval()(torch.randn(8, 64))


def batch_norm():
    nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))(torch.randn(5, 3, 12, 12))  # first: batch_norm


def batch_norm_alone():
    nn.Sequential(nn.LayerNorm(8), nn.BatchNorm1d(8))(torch.randn(5, 8))  # first: batch_norm_alone


def batch_norm_eval():
    nn.Sequential(nn.LayerNorm(8), nn.BatchNorm1d(8)).eval()(torch.randn(5, 8))


def dropout():
    nn.Sequential(nn.LayerNorm(8), nn.Dropout(0.5))(torch.randn(5, 8))  # first: dropout


def state():
    Keeps()(torch.randn(5, 8))


def attention_over_batch():
    AttentionOverBatch()(torch.randn(6, 32))


def shared_scale():
    SharedScale()(torch.randn(6, 8))


def one_row():
    SharedScale()(torch.randn(1, 8))


def equal_rows():
    SharedScale()(torch.ones(6, 8))


def masked():
    Masked().eval()(ids=IDS, attention_mask=REAL.long())


def left_padded():
    Masked().eval()(ids=IDS.flip(1), attention_mask=REAL.flip(1).long())


def leaking():
    Masked(leak=True).eval()(ids=IDS, attention_mask=REAL.long())


def fast_path():
    Encoder().eval()(IDS, padding_mask=~REAL)


def sequence_first():
    nn.LSTM(16, 32).eval()(torch.randn(7, 4, 16))


def hidden_state():
    nn.LSTM(16, 32, batch_first=True).eval()(
        torch.randn(4, 7, 16), (torch.zeros(1, 4, 32), torch.zeros(1, 4, 32))
    )


def mask_of_equal_length():
    Causal().eval()(torch.randn(7, 7, 32), torch.triu(torch.full((7, 7), float("-inf")), 1))


def memory():
    Memory().eval()(torch.randn(6, 32), torch.randn(6, 32))


def packed():
    lengths = torch.tensor([7, 5, 3, 2])
    batch = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 7, 16), lengths, batch_first=True)
    nn.LSTM(16, 32, batch_first=True).eval()(batch)


def places():
    Places().eval()(torch.randint(0, 50, (5, 9)))


def fixed():
    Fixed().eval()(torch.randn(2, 8))


def warm_up():
    model = nn.LayerNorm(8).eval()
    for count in (1, 6, 9):
        model(torch.randn(count, 8))


def goes_on():
    """The program's own numbers are as without the trial: those that it draws, and a model's buffers."""
    model = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.5))
    model(torch.randn(5, 8))
    print(torch.rand(3).tolist(), model[0].running_mean.tolist())


def uninitialised():
    """A buffer that cannot be copied."""
    model = nn.LayerNorm(8).eval()
    model.register_buffer("later", nn.UninitializedBuffer())
    model(torch.randn(5, 8))


class Refusing(dict):
    def items(self):
        raise ValueError("no one walks through this")


class OfTable(nn.LayerNorm):
    def forward(self, table):
        return super().forward(table["x"])


def refusing():
    OfTable(8).eval()(Refusing(x=torch.randn(5, 8)))


def nothing():
    print(torch.nn.functional.relu(torch.randn(3)).shape)


with torch.set_grad_enabled(sys.argv[1] == "goes_on"):
    globals()[sys.argv[1]]()
