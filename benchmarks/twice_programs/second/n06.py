# gensim#641: workers update shared weights, sentence by sentence, as they come
import threading, time
import numpy as np
from lab.log import Run

class Vectors:
    def __init__(self, words, size):
        self.weights = np.random.RandomState(1).rand(words, size)

    def train(self, sentences, rate):
        for words in sentences:
            time.sleep(0.0003 * (time.perf_counter_ns() // 1000 % 4))
            mean = self.weights[words].mean(0)
            self.weights[words] = self.weights[words] + rate * (mean - self.weights[words] ** 2)  # cause

rng = np.random.RandomState(2)
sentences = [rng.randint(0, 20, 5) for _ in range(60)]
vectors = Vectors(20, 4)
threads = [threading.Thread(target=vectors.train, args=(sentences[n::3], 0.05)) for n in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
np.save("vectors.npy", vectors.weights)
print("norm", float(np.abs(vectors.weights).sum()))
