"""Generation and labelling in batches."""
import logging
import time

logger = logging.getLogger("preferences")


class Pipeline:
    def __init__(self, generator, labeller):
        self.generator = generator
        self.labeller = labeller

    def generate(self, instructions, num_generations, batch_size):
        rows = []
        for start in range(0, len(instructions), batch_size):
            began = time.time()
            batch = instructions[start:start + batch_size]
            answers = self.generator.generate(batch, num_generations)
            for prompt, entries in zip(batch, answers):
                texts = [text for _, text in entries]
                rows.append({
                    "input": prompt,
                    "models": [model for model, _ in entries],
                    "generations": texts,
                    "ratings": [self.labeller.rate(prompt, t) for t in texts],
                })
            logger.info("batch %d took %.2f s", start // batch_size, time.time() - began)
        return rows
