"""Parser of the (simplified) pipeline configuration."""
import re
import uuid
from dataclasses import dataclass, field

CONFIG = """
filter { grok     { id => "access" field => "message" } }
filter { mutate   { id => "level"  field => "status"  } }
output { file     { name => "archive"  when => "any"    keep => "0.9" } }
output { elastic  { name => "search"   when => "ok"     keep => "0.7" } }
output { kafka    { name => "stream"   when => "slow"   keep => "0.8" } }
output { http     { name => "alerts"   when => "error"  keep => "1.0" } }
output { statsd   { name => "metrics"  when => "any"    keep => "0.4" } }
output { s3       { name => "cold"     when => "big"    keep => "0.6" } }
"""

BLOCK = re.compile(r"(filter|output)\s*\{\s*(\w+)\s*\{(.*?)\}\s*\}")
OPTION = re.compile(r'(\w+)\s*=>\s*"([^"]*)"')


@dataclass
class Plugin:
    kind: str
    id: str
    options: dict


@dataclass
class PipelineConfig:
    filters: list = field(default_factory=list)
    outputs: list = field(default_factory=list)


def plugin_id(options):
    """The configured id; a plugin without one gets a generated id."""
    if "id" in options:
        return options["id"]
    return "id_missing_" + uuid.uuid4().hex  # cause


def load_config(text):
    config = PipelineConfig()
    for section, kind, body in BLOCK.findall(text):
        options = dict(OPTION.findall(body))
        plugin = Plugin(kind, plugin_id(options), options)
        (config.filters if section == "filter" else config.outputs).append(plugin)
    # the daemon addresses the outputs by id, so keep them in that order
    config.outputs.sort(key=lambda p: p.id)
    return config
