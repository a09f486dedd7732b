"""Makes a stand-in for a cross-encoder out of all-MiniLM-L6-v2 in fp32, for tests: no package registry carries a real one.

It has a cross-encoder's shape and cost: input_ids, attention_mask and token_type_ids go in, one logit a pair comes out. Its
scores follow meaning, but rank no better than the model it is made of: it says nothing about the quality of reranking.

    python stand_in_reranker.py MODEL_DIR OUTPUT_DIR

Both folders hold model.onnx and tokenizer.json. It needs PyPI's onnx.

The pair is read as two texts that don't see each other: query and passage are told apart by their token types, positions
start anew in the passage, and the [SEP] between them becomes the passage's [CLS]. The logit comes from the cosine of both
texts' mean vectors, and from how near each token of the query has one in the passage.
"""

import pathlib
import shutil
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

CLS = 101
STEEPNESS, MIDDLE = 12.0, 0.5  # logit = STEEPNESS x (similarity - MIDDLE)


class Graph:
    """Adds nodes to a graph, each with one output that has the node's name."""

    def __init__(self, graph):
        self.graph = graph
        self.count = 0

    def constant(self, value, kind):
        self.count += 1
        name = f"stand_in/constant_{self.count}"
        self.graph.initializer.append(numpy_helper.from_array(numpy.array(value, kind), name))
        return name

    def node(self, operator, *inputs, **attributes):
        self.count += 1
        name = f"stand_in/{operator}_{self.count}"
        self.graph.node.append(helper.make_node(operator, list(inputs), [name], name, **attributes))
        return name

    def ints(self, value):
        return self.constant(value, numpy.int64)

    def floats(self, value):
        return self.constant(value, numpy.float32)

    def replace(self, node, old, new):
        """Gives the node of that name another input."""
        (found,) = [n for n in self.graph.node if n.name == node]
        (place,) = [i for i, name in enumerate(found.input) if name == old]
        found.input[place] = new

    def sort(self):
        """Puts each node behind those that it takes its inputs from."""
        known = {i.name for i in self.graph.input} | {i.name for i in self.graph.initializer} | {""}
        waiting, ordered = list(self.graph.node), []
        while waiting:
            ready = [n for n in waiting if known.issuperset(n.input)]
            known.update(name for n in ready for name in n.output)
            ordered += ready
            waiting = [n for n in waiting if n not in ready]
        del self.graph.node[:]
        self.graph.node.extend(ordered)


def length(g, x):
    """The Euclidean length of the vectors on the last axis, never quite zero."""
    squares = g.node("ReduceSum", g.node("Mul", x, x), axes=[-1], keepdims=1)
    return g.node("Sqrt", g.node("Add", squares, g.floats(1e-12)))


def build(model):
    g = Graph(model.graph)
    positions = "/embeddings/Slice_output_0"  # 0, 1, 2, ...

    # Where the passage begins, counted from the [SEP] that becomes its [CLS].
    outside = g.node("Mul", g.node("Sub", g.ints(1), "token_type_ids"), "attention_mask")
    start = g.node("Sub", g.node("ReduceSum", outside, axes=[1], keepdims=1), g.ints(1))
    first = g.node("Equal", positions, start)
    passage = g.node("Add", "token_type_ids", g.node("Cast", first, to=TensorProto.INT64))
    ids = g.node("Where", first, g.ints(CLS), "input_ids")
    restarted = g.node("Sub", positions, g.node("Mul", passage, start))

    # Tokens see those of their own text.
    same = g.node("Equal", g.node("Unsqueeze", passage, axes=[2]), g.node("Unsqueeze", passage, axes=[1]))
    there = g.node("Unsqueeze", "attention_mask", axes=[1])
    seen = g.node("Unsqueeze", g.node("Mul", g.node("Cast", same, to=TensorProto.INT64), there), axes=[1])

    g.replace("/Cast", "/Unsqueeze_1_output_0", seen)
    g.replace("/embeddings/word_embeddings/Gather", "input_ids", ids)
    g.replace("/embeddings/position_embeddings/Gather", positions, restarted)
    g.replace("/embeddings/token_type_embeddings/Gather", "token_type_ids", g.node("Mul", "token_type_ids", g.ints(0)))

    # The mean vector of each text, and their cosine.
    tokens = "last_hidden_state"
    masks = []
    for chosen in (g.node("Sub", g.ints(1), passage), passage):
        masks.append(g.node("Cast", g.node("Mul", chosen, "attention_mask"), to=TensorProto.FLOAT))
    means = []
    for mask in masks:
        total = g.node("ReduceSum", g.node("Mul", tokens, g.node("Unsqueeze", mask, axes=[2])), axes=[1], keepdims=0)
        means.append(g.node("Div", total, length(g, total)))
    cosine = g.node("ReduceSum", g.node("Mul", *means), axes=[1], keepdims=1)

    # For each token of the query the nearest of the passage, on average.
    unit = g.node("Div", tokens, length(g, tokens))
    near = g.node("MatMul", unit, g.node("Transpose", unit, perm=[0, 2, 1]))
    barred = g.node("Mul", g.node("Sub", masks[1], g.floats(1)), g.floats(10))
    nearest = g.node("ReduceMax", g.node("Add", near, g.node("Unsqueeze", barred, axes=[1])), axes=[2], keepdims=0)
    asked = g.node("ReduceSum", masks[0], axes=[1], keepdims=1)
    average = g.node("Div", g.node("ReduceSum", g.node("Mul", nearest, masks[0]), axes=[1], keepdims=1), asked)

    similarity = g.node("Mul", g.node("Add", cosine, average), g.floats(0.5))
    logit = g.node("Mul", g.node("Sub", similarity, g.floats(MIDDLE)), g.floats(STEEPNESS))
    model.graph.node.append(helper.make_node("Identity", [logit], ["logits"], "logits"))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1]))
    unused = [n for n in model.graph.node if n.name in ("/Unsqueeze", "/Unsqueeze_1")]
    for node in unused:
        model.graph.node.remove(node)
    g.sort()


def main(source: str, target: str) -> None:
    source, target = pathlib.Path(source), pathlib.Path(target)
    model = onnx.load(str(source / "model.onnx"))
    build(model)
    onnx.checker.check_model(model)
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "tokenizer.json", target / "tokenizer.json")
    part = target / "model.onnx.part"
    onnx.save(model, str(part))
    part.rename(target / "model.onnx")


if __name__ == "__main__":
    main(*sys.argv[1:])
