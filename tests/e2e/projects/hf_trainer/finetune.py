import os
from dataclasses import dataclass

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
)


@dataclass
class DataArguments:
    examples: int = 64


class Parity(torch.utils.data.Dataset):
    def __init__(self, examples):
        generator = torch.Generator().manual_seed(1)
        self.tokens = torch.randint(4, 20, (examples, 8), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": int(self.tokens[index][0] > 11)}


def main():
    data, training = HfArgumentParser((DataArguments, TrainingArguments)).parse_args_into_dataclasses()
    config = BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    dataset = Parity(data.examples)
    trainer = Trainer(
        BertForSequenceClassification(config), training, train_dataset=dataset, eval_dataset=dataset
    )
    trainer.train()
    trainer.evaluate()
    trainer.save_model(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/"))


if __name__ == "__main__":
    main()
