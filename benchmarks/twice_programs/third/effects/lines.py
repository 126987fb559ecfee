import random

class Lines:
    def __init__(self, count=2, level=0.9):
        self.count, self.level = count, level

    def __call__(self, image):
        image = image.copy()
        for _ in range(self.count):
            image[:, random.randrange(image.shape[-2])] = self.level
        return image
