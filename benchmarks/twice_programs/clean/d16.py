"""Style of keras-team/keras-io examples (fit verbose, CSVLogger, TimeHistory callbacks). Differs in each run: 'ms/step' of the
progress bars, batch and epoch times in history.json and the CSV, date_saved inside the .keras archive, time-stamped log folder."""
import json
import os
import time
from datetime import datetime

os.environ["KERAS_BACKEND"] = "torch"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import keras
import numpy as np
import torch
from keras import layers

torch.set_num_threads(1)
keras.utils.set_random_seed(812)
LOGDIR = os.path.join("logs", "fit", datetime.now().strftime("%Y%m%d-%H%M%S"))
os.makedirs(LOGDIR)


def make_series(n, seed, length=48):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    t = np.arange(length)
    x = np.stack([np.sin(t / (2.0 + k) + rng.uniform(0, 6)) + (0.6 if k == 2 else 0) * np.sign(np.sin(t / 3)) for k in y])
    return (x + rng.normal(0, 0.6, x.shape)).astype("float32")[..., None], y


class TimeHistory(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.times, self.batch_times, self.start = [], [], time.time()

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch_start, self.bt = time.time(), []

    def on_train_batch_begin(self, batch, logs=None):
        self.b0 = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.bt.append(time.perf_counter() - self.b0)

    def on_epoch_end(self, epoch, logs=None):
        dt = time.time() - self.epoch_start
        self.times.append(dt)
        self.batch_times.append(float(np.mean(self.bt)))
        logs["epoch_time"] = dt
        eta = np.mean(self.times) * (self.params["epochs"] - epoch - 1)
        print(f"\n  epoch {epoch + 1} wall {dt:.2f}s - avg batch {1e3 * self.batch_times[-1]:.1f}ms - p90 {1e3 * np.quantile(self.bt, .9):.1f}ms"
              f" - ETA {eta:.0f}s - loss {logs['loss']:.4f} - val_loss {logs['val_loss']:.4f}")


def build():
    inp = keras.Input((48, 1))
    x = inp
    for f in (16, 24):
        x = layers.Conv1D(f, 5, padding="same")(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dropout(0.2)(x)
    return keras.Model(inp, layers.Dense(4, activation="softmax")(x), name="fcn")


def main():
    t0 = time.time()
    (xt, yt), (xv, yv) = make_series(900, 1), make_series(300, 2)
    model = build()
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.summary(line_length=80)
    th = TimeHistory()
    hist = model.fit(xt, yt, epochs=3, batch_size=32, validation_data=(xv, yv), verbose=1,
                     callbacks=[th, keras.callbacks.CSVLogger(os.path.join(LOGDIR, "training.csv")),
                                keras.callbacks.ModelCheckpoint("best_model.keras", monitor="val_loss", save_best_only=True)])
    loss, acc = model.evaluate(xv, yv, verbose=2)
    t1 = time.perf_counter()
    prob = model.predict(xv, verbose=0)
    infer = time.perf_counter() - t1
    np.save("probabilities.npy", prob)
    with open(os.path.join(LOGDIR, "history.json"), "w") as f:
        json.dump({"history": {k: [float(v) for v in vs] for k, vs in hist.history.items()}, "batch_times": th.batch_times,
                   "total_time": time.time() - th.start, "date": datetime.now().isoformat()}, f, indent=2)
    print("Test accuracy", acc)
    print("Test loss", loss)
    print(f"Inference: {1e6 * infer / len(xv):.0f} µs/sample ({len(xv) / infer:.1f} samples/s)")
    print("--- %s seconds ---" % (time.time() - t0))


if __name__ == "__main__":
    main()
