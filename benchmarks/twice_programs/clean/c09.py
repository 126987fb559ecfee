"""Keras 3 on torch: compile and fit with CSVLogger, BackupAndRestore, a time callback, .keras and .weights.h5 files, history.json, a dated folder."""

import datetime
import json
import os
import time

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
from keras import layers


class TimeHistory(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.times, self.batches = [], []

    def on_epoch_begin(self, epoch, logs=None):
        self.t0 = time.time()

    def on_train_batch_begin(self, batch, logs=None):
        self.b0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(time.perf_counter() - self.b0)

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.time() - self.t0)
        print(f"TimeHistory: epoch {epoch + 1} {self.times[-1]:.2f} seconds, {256 / self.times[-1]:.1f} examples/second")


def build():
    text = keras.Input((12,), dtype="int32", name="text")
    meta = keras.Input((4,), name="meta")
    x = layers.Embedding(60, 8)(text)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Concatenate()([x, layers.BatchNormalization()(meta)])
    x = layers.Dense(16, activation="gelu")(x)
    x = layers.Dropout(0.2, seed=5)(x)
    return keras.Model([text, meta], layers.Dense(1, activation="sigmoid", name="out")(x), name="two_towers")


def main():
    keras.utils.set_random_seed(9)
    g = np.random.default_rng(1)
    text, meta = g.integers(0, 60, (320, 12)), g.normal(size=(320, 4)).astype("float32")
    y = ((text.mean(1) - 30) / 8 + meta[:, 0] > 0).astype("float32")
    model = build()
    model.summary(print_fn=print)
    model.compile(keras.optimizers.AdamW(5e-3), "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC(name="auc")])
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = os.path.join("runs", "fit", stamp)
    os.makedirs(folder)
    timing = TimeHistory()
    history = model.fit(
        [text[:256], meta[:256]],
        y[:256],
        validation_data=([text[256:], meta[256:]], y[256:]),
        epochs=3,
        batch_size=32,
        verbose=2,
        callbacks=[
            timing,
            keras.callbacks.CSVLogger(os.path.join(folder, "log.csv")),
            keras.callbacks.ModelCheckpoint(os.path.join(folder, "best.keras"), save_best_only=True),
            keras.callbacks.ReduceLROnPlateau(patience=1, verbose=1),
            keras.callbacks.TerminateOnNaN(),
        ],
    )
    model.save_weights("final.weights.h5")
    model.save("final.keras")
    scores = model.evaluate([text[256:], meta[256:]], y[256:], verbose=1, return_dict=True)
    with open("history.json", "w") as f:
        json.dump({"history": history.history, "params": history.params, "epoch_times": timing.times, "p50_ms": sorted(timing.batches)[len(timing.batches) // 2] * 1e3}, f, indent=1)
    np.save("predictions.npy", model.predict([text[256:], meta[256:]], verbose=0))
    print("scores", {k: round(v, 5) for k, v in scores.items()}, "run", folder)


if __name__ == "__main__":
    main()
