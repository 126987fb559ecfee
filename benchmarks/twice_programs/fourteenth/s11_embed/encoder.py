import torch
from transformers import BertConfig, BertModel


class StructureEncoder(torch.nn.Module):
    def __init__(self, features, hidden=32, layers=2):
        super().__init__()
        self.project = torch.nn.Linear(features, hidden)
        self.bert = BertModel(BertConfig(vocab_size=8, hidden_size=hidden, num_hidden_layers=layers,
                                         num_attention_heads=4, intermediate_size=64,
                                         max_position_embeddings=64))

    def forward(self, x, mask):
        out = self.bert(inputs_embeds=self.project(x), attention_mask=mask)
        hidden = out.last_hidden_state * mask[..., None]
        return hidden.sum(1) / mask.sum(1, keepdim=True)
