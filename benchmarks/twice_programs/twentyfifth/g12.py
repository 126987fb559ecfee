"""Makes reStructuredText pages from a Doxygen-like XML description of a library.

The XML is generated, parsed into node objects, and the members that others
refer to are collected; one index page and one page for each namespace are
written, with numbered anchors.

Modelled on: https://github.com/breathe-doc/breathe/pull/235
"""
import hashlib
import os
import random
import time
import xml.etree.ElementTree as ET

NAMESPACES = 12
CLASSES = 40
MEMBERS = 14
OUT = "rst"
KINDS = ["function", "variable", "typedef", "enum"]
VERBS = ["add", "clear", "find", "flush", "load", "merge", "open", "reset", "split", "write"]
NOUNS = ["Buffer", "Cache", "Index", "Layer", "Node", "Queue", "Record", "Stream", "Table", "View"]


class Node:
    """Something that can be rendered: a class or a member of one."""

    def __init__(self, refid, kind, name, namespace):
        self.refid = refid
        self.kind = kind
        self.name = name
        self.namespace = namespace
        self.brief = ""
        self.references = []
        self.anchor = None


def write_xml(path, seed):
    rng = random.Random(seed)
    root = ET.Element("doxygen", version="1.9")
    refids = []
    for n in range(NAMESPACES):
        space = ET.SubElement(root, "namespace", name=f"ns{n:02d}")
        for c in range(CLASSES):
            name = rng.choice(NOUNS) + str(c)
            refid = f"class_{n:02d}_{c:03d}"
            compound = ET.SubElement(space, "compound", id=refid, kind="class", name=name)
            refids.append(refid)
            for m in range(MEMBERS):
                member = f"{refid}_{m:02d}"
                refids.append(member)
                ET.SubElement(compound, "member", id=member, kind=rng.choice(KINDS),
                              name=f"{rng.choice(VERBS)}{rng.choice(NOUNS)}{m}")
    for element in root.iter("member"):
        ET.SubElement(element, "brief").text = f"Works on the {rng.choice(NOUNS).lower()}."
        for _ in range(rng.randrange(3)):
            ET.SubElement(element, "ref", to=rng.choice(refids))
    ET.ElementTree(root).write(path)


class Parser:
    def parse(self, path):
        nodes = {}
        for space in ET.parse(path).getroot():
            for compound in space:
                self.add(nodes, compound, space.get("name"))
                for member in compound:
                    self.add(nodes, member, space.get("name"))
        return nodes

    def add(self, nodes, element, namespace):
        node = Node(element.get("id"), element.get("kind"), element.get("name"), namespace)
        node.brief = element.findtext("brief") or ""
        node.references = [ref.get("to") for ref in element.findall("ref")]
        nodes[node.refid] = node


class Renderer:
    def __init__(self, nodes):
        self.nodes = nodes
        self.pages = {}
        self.counter = 0

    def collect(self):
        """Everything that is documented or that something refers to."""
        wanted = set()
        for node in self.nodes.values():
            if node.references or node.kind == "class":
                wanted.add(node)
            for refid in node.references:
                wanted.add(self.nodes[refid])
        return wanted

    def render(self):
        wanted = self.collect()
        for node in wanted:  # cause
            self.counter += 1
            node.anchor = f"ref{self.counter:05d}"
            self.pages.setdefault(node.namespace, []).append(node)
        return len(wanted)

    def page(self, namespace):
        lines = [namespace, "=" * len(namespace), ""]
        for node in self.pages[namespace]:
            lines += [f".. _{node.anchor}:", "", f".. cpp:{node.kind}:: {namespace}::{node.name}", ""]
            if node.brief:
                lines += ["   " + node.brief, ""]
            for refid in node.references:
                target = self.nodes[refid]
                lines += [f"   See :ref:`{target.name} <{target.anchor}>`.", ""]
        return "\n".join(lines)

    def index(self):
        rows = sorted((n.name, n.refid, n.anchor) for nodes in self.pages.values() for n in nodes)
        return "\n".join(f"* :ref:`{name} <{anchor}>`" for name, _, anchor in rows)


def main():
    began = time.time()
    os.makedirs(OUT, exist_ok=True)
    total = 0
    for part in range(8):
        source = os.path.join(OUT, f"library{part}.xml")
        write_xml(source, seed=40 + part)
        renderer = Renderer(Parser().parse(source))
        count = renderer.render()
        total += count
        digest = hashlib.sha256()
        for namespace in sorted(renderer.pages):
            text = renderer.page(namespace)
            digest.update(text.encode())
            with open(os.path.join(OUT, f"library{part}_{namespace}.rst"), "w") as f:
                f.write(text)
        with open(os.path.join(OUT, f"library{part}_index.rst"), "w") as f:
            f.write(renderer.index())
        first = renderer.pages["ns00"][0]
        print(f"library{part}: {count} nodes, ns00 begins with {first.name} ({first.anchor}),"
              f" pages {digest.hexdigest()[:16]}")
    print(f"{total} nodes rendered in {time.time() - began:.1f} s")


if __name__ == "__main__":
    main()
