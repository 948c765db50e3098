import logging
import os

import hydra
import numpy as np
from omegaconf import DictConfig

log = logging.getLogger(__name__)


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    random = np.random.default_rng(config.seed)
    inputs, weight = random.normal(size=64), 0.0
    for epoch in range(config.epochs):
        error = weight * inputs - 3 * inputs
        weight -= config.model.learning_rate * float((2 * error * inputs).mean())
        log.info("epoch=%d loss=%.4f", epoch, float((error**2).mean()))
    folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
    os.makedirs(folder, exist_ok=True)
    np.save(os.path.join(folder, "weight.npy"), weight)


if __name__ == "__main__":
    main()
