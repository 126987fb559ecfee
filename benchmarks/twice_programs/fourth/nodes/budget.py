class Program:
    def __init__(self, name, weight):
        self.name = name
        self.weight = weight


class Constraint:
    def __init__(self, programs):
        self.programs = {year: set(programs) for year in range(2020, 2023)}

    def eligible(self, year):
        return [each for each in self.programs[year] if each.weight > 0]  # cause
