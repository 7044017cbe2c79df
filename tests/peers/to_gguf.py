"""Converts a model directory to a GGUF file without a tokenizer, so that llama.cpp can be timed
on the same shape and types (llama_rows.cpp). The directory is as `decoscope model random` writes it:
LLaMA's tensors in one safetensors file. Needs gguf, numpy, safetensors and torch from PyPI.

    python3 tests/peers/to_gguf.py MODEL_DIR OUT.gguf
"""
import json
import pathlib
import sys

import gguf
import numpy
import torch
from safetensors import safe_open

LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
OTHER_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    """"model.layers.3.mlp.up_proj.weight" as "blk.3.ffn_up.weight"."""
    stem = name.removesuffix(".weight")
    if stem in OTHER_NAMES:
        return OTHER_NAMES[stem] + ".weight"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{LAYER_NAMES[part]}.weight"


def write_shape(writer, config):
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_name("random")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("no_vocab")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)


def main(directory, out):
    config = json.loads((directory / "config.json").read_text())
    writer = gguf.GGUFWriter(out, "llama")
    write_shape(writer, config)
    with safe_open(directory / "model.safetensors", "pt") as tensors:
        for name in tensors.keys():
            tensor = tensors.get_tensor(name)
            if tensor.dim() == 1:  # norms, which llama.cpp keeps in f32
                writer.add_tensor(gguf_name(name), tensor.float().numpy())
                continue
            bits = tensor.to(torch.bfloat16).view(torch.uint16).numpy()
            writer.add_tensor(gguf_name(name), bits.view(numpy.uint8),
                              raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
