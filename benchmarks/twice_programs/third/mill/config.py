"""Settings of an experiment, from defaults, a JSON file and arguments."""
import argparse, dataclasses, json
from pathlib import Path

@dataclasses.dataclass
class Config:
    name: str = "run"
    seed: int = 0
    epochs: int = 2
    batch: int = 16
    width: int = 16
    lr: float = 0.01
    folder: str = "work"
    extra: dict = dataclasses.field(default_factory=dict)

    def path(self, *parts):
        path = Path(self.folder, self.name, *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def dump(self):
        self.path("config.json").write_text(json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True))
        return self

def parse(**defaults):
    parser = argparse.ArgumentParser()
    for field in dataclasses.fields(Config):
        if field.type in (str, int, float, "str", "int", "float"):
            parser.add_argument(f"--{field.name}", type=type(field.default), default=defaults.get(field.name, field.default))
    return Config(**vars(parser.parse_args())).dump()
