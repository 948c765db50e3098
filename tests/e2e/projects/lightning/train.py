import argparse
import os

import lightning
import torch
from lightning.pytorch.loggers import TensorBoardLogger


class Line(lightning.LightningModule):
    def __init__(self, learning_rate):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, _):
        self.log("val_loss", torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1]), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.learning_rate)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    args = parser.parse_args()
    lightning.seed_everything(1)
    inputs = torch.linspace(-1, 1, 64).unsqueeze(1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, 3 * inputs + 1), batch_size=16)
    logs = os.environ["AIP_TENSORBOARD_LOG_DIR"].replace("gs://", "/gcs/")
    trainer = lightning.Trainer(
        max_epochs=args.epochs,
        log_every_n_steps=1,
        accelerator="cpu",
        logger=TensorBoardLogger(logs, name="", version=""),
    )
    trainer.fit(Line(args.learning_rate), data, data)
    folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
    os.makedirs(folder, exist_ok=True)
    trainer.save_checkpoint(os.path.join(folder, "model.ckpt"))


if __name__ == "__main__":
    main()
