"""Wrong usage: exit code 2 and one sentence, with the word that was probably meant."""

import re
import subprocess

import pytest
from running import octet, only_sentence  # noqa: F401


COMMANDS = ("generate, caption, demo, serve, pull, list, rm, inspect, quantize, compare, certify, "
            "devices, bench, tune, map, plan, audit, config, completion, man or help")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["a command is missing", COMMANDS, "see octet --help"]),
        (["nope"], ["'nope'", COMMANDS, "see octet --help"]),
        (["nope", "--json", "-"], ["'nope'", COMMANDS]),
        (["--nope"], ["'--nope' was not expected"]),
        (["bench"], ["bench: a command is missing, expected gemm, linear, quantize, step or e2e",
                    "see octet bench --help"]),
        (["bench", "nope"], ["bench: 'nope'", "expected gemm, linear, quantize, step or e2e"]),
        (["genrate"], ["'genrate' is not a command; did you mean generate?"]),
        (["bench", "gem"], ["bench: 'gem' is not a command; did you mean gemm?"]),
        (["help", "genrate"], ["help: 'genrate' is not a command, expected " + COMMANDS]),
        (["help", "bench", "nope"], ["expected gemm, linear, quantize, step or e2e"]),
        (["ui"], ["use octet serve"]),
        (["train"], ["nothing is trained here; octet generate --lora FILE"]),
        (["demo", "--from", "a.png"], ["use octet generate --model MODEL --from PICTURE"]),
        (["demo", "--list"], ["what it can paint is in the sentence"]),
        (["generate", "--model", "a", "--edit"], ["from captions alone"]),
        (["generate", "--model", "a", "--tiling"], ["no pictures that tile"]),
        (["generate", "--model", "a", "--fa"], ["attention is already fused"]),
        (["ls"], ["'ls' is not a command; use octet list"]),
        (["remove", "a/b"], ["use octet rm"]),
        (["img2img"], ["pictures are made from captions alone; use octet generate"]),
        (["demo", "--size", "512"], ["the demo has its model's size", "octet generate"]),
        (["demo", "-W", "512"], ["the demo has its model's size"]),
        (["demo", "-n", "4"], ["the demo is one picture; another --seed gives another"]),
        (["demo", "--negative", "x"], ["say it in the --prompt: a moon, no stars"]),
        (["-v"], ["'-v' was not expected; use octet --version"]),
        (["--list"], ["use octet list"]),
        (["demo", "--model", "a"], ["the demo has its own model; use octet generate --model"]),
        (["generate", "--model", "a", "-i", "x.png"], ["--from PICTURE"]),
        (["generate", "--model", "a", "--init-img", "x.png"], ["from captions alone"]),
        (["generate", "--model", "a", "--strength", "0.5"], ["there is no img2img", "--lora"]),
        (["generate", "--model", "a", "--upscale-model", "x"], ["there is no upscaler", "--size"]),
        (["generate", "--model", "a", "--vae-tiling"], ["leave it out", "--keep stream"]),
        (["generate", "--model", "a", "--prompt-file", "x"],
         [".jsonl or .csv list as --caption", "--wrap-text makes one caption"]),
        (["generate", "--model", "a", "--lora-strength", "1"], ["--lora FILE:0.8"]),
        (["generate", "--model", "a", "--ratio", "16:9"], ["--size WIDTHxHEIGHT"]),
        (["generate", "--model", "a", "--sampling-method", "euler"], ["--preset"]),
        (["generate", "--model", "a", "--batch_size", "2"], ["use -n"]),
        (["generate", "--model", "a", "--ckpt", "x"], ["use --model"]),
        (["generate", "--model", "a", "--clip-skip", "2"], ["Qwen3-VL"]),
        (["generate", "--model", "a", "--rng", "cuda"], ["same bits everywhere"]),
        (["generate", "--model", "a", "--lora-model-dir", "x"], ["use --lora FILE[:strength]"]),
        (["generate", "--model", "a", "--vulkan"], ["--device cpu or cuda"]),
        (["generate", "-p", "x"], ["--model MODEL is missing; octet list shows"]),
        (["rm", "a/b", "--force"], ["use --yes"]),
        (["rm", "."], ["is not owner/name of a pulled repository"]),
        (["generate", "--model", "a", "-p", "x", "--show", "iterm"],
         ["'iterm' is not a choice, expected auto, kitty, sixel or off"]),
        (["download", "a/b"], ["use octet pull"]),
        (["demo", "--sede", "3"], ["demo: the argument '--sede' was not expected; did you mean "
                                   "--seed?"]),
        (["demo", "-seed", "3"], ["did you mean --seed?"]),
        (["demo", "--sed=3"], ["did you mean --seed?"]),
        (["demo", "--output", "a.png"], ["'--output' was not expected; use -o"]),
        (["demo", "--gpu"], ["use --device cuda"]),
        (["bench", "gemm", "--shape", "1,2,3"], ["did you mean --shapes?"]),
        (["bench", "linear", "--shapes", "1,2,3"], ["did you mean --shape?"]),
        (["bench", "linear", "--sizes", "1,2,3"], ["use --shape m,n,k"]),
        (["bench", "linear", "--shape", "1,2,3;4,5,6"], ["--shape has 2 shapes, expected one"]),
        (["quantize", "a", "b", "--calib", "x"], ["did you mean --calibration-"]),
        (["compare", "a", "b", "--width", "512"], ["--size WIDTHxHEIGHT"]),
        (["compare", "a", "b", "--height=512"], ["--size WIDTHxHEIGHT"]),
        (["compare", "a", "b", "--cfg", "3"], ["'--cfg' was not expected; use --guidance"]),
        (["compare", "a", "b", "--cfg-scale", "3"], ["use --guidance"]),
        (["compare", "a", "b", "--negative-prompt", "x"],
         ["Ideogram 4 takes no negative prompt"]),
        (["compare", "a", "b", "--batch", "2"], ["use -n"]),
        (["compare", "a", "b", "--cfg_scale=3"], ["use --guidance"]),
        (["compare", "a", "b", "--guidance_scale", "3"], ["use --guidance"]),
        (["compare", "a", "b", "--negative_prompt", "x"], ["takes no negative prompt"]),
        (["compare", "a", "b", "--num_inference_steps", "9"], ["use --steps, or a --preset"]),
        (["compare", "a", "b", "-s", "3"], ["'-s' was not expected; use --seed"]),
        (["compare", "a", "b", "--offload-to-cpu"], ["use --keep host or --keep stream",
                                                     "docs/memory_and_speed.md says what fits"]),
        (["compare", "a", "b", "--max-vram", "8"], ["use --max-memory"]),
        (["compare", "a", "b", "-p", "x", "--keep", "disk"],
         ["--keep is 'disk', expected device, host or stream"]),
        (["generate", "--model", "a", "-p", "x", "--attention", "float"],
         ["'float' is not a choice, expected auto, bf16, int8 or int8-full"]),
        (["demo", "--keep", "=host"], ["--keep is '=host'", "PART="]),
        (["demo", "--keep", "device,vae=gpu"], ["--keep is 'vae=gpu'"]),
        (["demo", "--max-memory", "much"], ["'much' is not a size in bytes"]),
        (["generate", "--model", "a", "--outdir", "b"], ["-o 'folder/{name}.png'"]),
        (["generate", "--model", "a", "-p", "x", "-o", "{nam}.png"],
         ["--out has {nam}, expected {name}, {index}, {image} or {seed}"]),
        (["generate", "--model", "a", *["--caption", "-"] * 2], ["standard input is read once"]),
        (["generate", "--model", "a", "-p", "x", "-p", ""], ["--prompt is empty"]),
        (["compare", "a", "b", "--diffusion-fa"], ["attention is already fused"]),
        (["compare", "a", "b", "--guidance", "abc"], ["--guidance: 'abc' is not a number"]),
        (["compare", "a", "b", "--guidance="], ["--guidance has no value, expected FLOAT,..."]),
        (["compare", "a", "b", "--preset"], ["--preset has no value, expected quality|"]),
        (["certify"], ["certify: CHECKPOINT is missing; see octet certify --help"]),
        (["certify", "a", "--min-snr", "x"], ["--min-snr"]),
        (["certify", "a", "--out", ""], ["the path is empty"]),
        (["compare", "a", "b", *["--size", "8"] * 3], [": --size was given 3 times"]),
        (["compare", "a", "b", "-n", "0"], ["compare: --images is '0', expected"]),
        (["generate", "--model", "a", "-p", "x", "-o", "x.GIF"],
         ['"x.GIF"', "expected .png, .jpg, .jpeg or .webp"]),
        (["generate", "--model", "a", "-p", "x", "-o", "/tmp"],
         ["'/tmp' is a folder", "such as '/tmp/picture.png'"]),
        (["generate", "--model", "a", "-p", "x", "-o", "new/"], ["'new/' is a folder"]),
        (["generate", "--model", "a", "-p", "x", "--quality", "80"],
         ["--quality is for JPEG and WebP", "name it .jpg or .webp"]),
        (["demo", "-o", "x.jpg", "--quality", "101"], ["--quality is '101'", "from 1 to 100"]),
        (["generate", "--model", "a", "-p", "x", "--lora", "f.safetensors:abc"],
         ['"abc" is neither a strength nor networks']),
        (["generate", "--model", "a", "-p", "x", "--lora", "f.safetensors:1:foo"], ['"foo"']),
        (["generate", "--model", "a", "-p", "x", "--require-int8", "--linears", "float"],
         ["leave --linears out"]),
        (["pull", "a"], ['"a" is not the name of a repository', "owner/name"]),
        (["pull", "https://example.com/a/b"], ["expected one on huggingface.co"]),
        (["pull", "a/b", "--revision", "../x"], ['the revision "../x"']),
        (["inspect"], ["inspect: FILE is missing; see octet inspect --help"]),
        (["pull"], ["pull: REPO is missing"]),
        (["pull", "a/b", "--token", "hf_x"], ["set HF_TOKEN"]),
        (["generate", "help"], ["use octet generate --help"]),
        (["generate", "a cat"], ["'a cat' was not expected; describe the picture with --prompt"]),
        (["generate", "--widht", "512"], ["--size WIDTHxHEIGHT"]),
        (["generate", "--model", "a", "-p", ""], ["--prompt is empty"]),
        (["demo", "-o", ""], ["the path is empty"]),
        (["quantize", "a", "--output", "b"], ["give the output after the source"]),
        (["inspect", ""], ["inspect: file: the path is empty"]),
        (["inspect", "a", "b"], ["inspect: ", "'b' was not expected"]),
        (["inspect", "a", "--device", "cpu"], ["'--device' was not expected"]),
        (["devices", "--threads", "2"], ["'--threads' was not expected"]),
        (["devices", "--no-such-flag"], ["'--no-such-flag'", "see octet devices --help"]),
        (["devices", "--json", ""], ["--json", "empty"]),
        (["devices", "-v", "-q"], ["--quiet", "--verbose"]),
        (["demo", "--threads", "0"], ["'0'", "from 1 to "]),
        (["demo", "--threads", "many"], ["'many'", "from 1 to "]),
        (["demo", "--threads", "4096"], ["--threads is '4096'", "from 1 to "]),
        (["demo", "--threads", "9" * 30], ["from 1 to "]),
        (["demo", "--seed", "-1"], ["--seed", "'-1'", "from 0 to"]),
        (["demo", "--seed", "9" * 20], ["--seed", "from 0 to"]),
        (["demo", "--device", "tpu"], ["'tpu'", "cuda:<number>"]),
        (["demo", "--device", "cuda:"], ["'cuda:'", "cuda:<number>"]),
        (["demo", "--device", "cuda:x\x1b\n"], ["cuda:x\\u001b\\u000a", "cuda:<number>"]),
        (["bench", "gemm", "--seconds", "nan"], ["--seconds", "'nan'", "0 to 3600"]),
        (["bench", "gemm", "--seconds", "-1"], ["--seconds", "'-1'", "0 to 3600"]),
        (["bench", "gemm", "--dtype", "int4"], ["bench gemm: --dtype", "'int4'", "bf16 or f32"]),
        (["bench", "gemm", "--shapes", "1,2"], ["'1,2'", "m,n,k"]),
        (["bench", "gemm", "--shapes", ""], ["--shapes: the value is empty"]),
        (["bench", "gemm", "--shapes", "1,2,3;"], ["item 2 of '1,2,3;' is empty", "';'"]),
        (["bench", "gemm", "--shapes", "1,2,3;;4,5,6"], ["item 2 of '1,2,3;;4,5,6' is empty"]),
        (["bench", "gemm", "--shapes", "1,2,x"], ["'x'", "whole number"]),
        (["bench", "gemm", "--shapes", "1,2,999999999"], ["too large", "132104"]),
        (["bench", "gemm", "--shapes", "1,2," + "9" * 30], ["too large", "132104"]),
        (["bench", "gemm", "--shapes", "1,2,-" + "9" * 30], ["whole number"]),
        (["bench", "gemm", "--shapes", "ideogram4@1000"], ["1000", "multiple of 16"]),
        (["bench", "gemm", "--tune", "always"], ["--tune", "'always'", "off, missing or all"]),
        (["bench", "gemm", "--path", "fp8"], ["--path", "'fp8'", "auto, int8 or bf16"]),
        (["bench", "gemm", "--path", "auto", "--dtype", "f32"], ["--path auto", "--dtype bf16"]),
        (["bench", "gemm", "--peers", "--only-native"], ["--peers", "--only-native"]),
        (["bench", "gemm", "--peers", "--path", "bf16"], ["--peers", "got --path bf16"]),
        (["bench", "quantize", "--rows", "0"], ["--rows", "'0'", "1 to 16777216"]),
        (["bench", "quantize", "--rows", "1,2"], ["--rows", "2 numbers", "at most 1"]),
        (["bench", "quantize", "--k", "4608,"], ["--k", "''", "whole number"]),
        (["bench", "quantize", "--k", "132105"], ["'132105'", "1 to 132104"]),
        (["bench", "quantize", "--shapes", "1,2,3"], ["'--shapes' was not expected"]),
        (["map", "--predict", "h100,h20000"], ["--predict: there is no card"]),
        (["tune", "--tune", "off"], ["tune: --tune", "'off'", "missing or all"]),
        (["tune", "--shapes", "ideogram4@"], ["tune: ", "whole number"]),
    ],
)
def test_wrong_usage_is_one_sentence(octet, arguments, parts):
    sentence = only_sentence(octet(*arguments), code=2)
    for part in parts:
        assert part in sentence


# OLD is a file that exists, NEW one that does not.
@pytest.mark.parametrize("arguments", [
    "inspect OLD --json OLD",
    "inspect OLD --json folder/../OLD",
    "inspect OLD --json link-to-OLD",
    "inspect a --base OLD --json OLD",
    "caption check OLD --json OLD",
    "demo -o NEW.png --json ./NEW.png",
    "demo -o NEW.png --json link-to-NEW",
    "generate --model OLD -p x --json OLD",
    "generate --model a --caption OLD --json OLD",
    "generate --model a -p x --lora OLD:0.5 --json OLD",
    "generate --model a -p x --vae OLD --json OLD",
    "generate --model a -p x --caption OLD --json OLD",
    "generate --model a --caption folder --json folder/old",
    "generate --model a -p x -p y -o NEW.png --json NEW-prompt-2.png",
    "generate --model a -p x -o NEW.png --preview ./NEW.png",
    "generate --model a -p x -n 2 -o NEW.png --json NEW-2.png",
    "compare a OLD -p x --json OLD",
    "quantize OLD NEW --json OLD",
    "quantize a NEW --json NEW",
    "quantize a b --statistics OLD --json OLD",
    "quantize a NEW --captions c --json NEW.activations.safetensors",
    "inspect folder --json folder/old",
    "generate --model . -p x --json OLD",
    "quantize a b --captions folder --report folder/old",
    "quantize a folder --json folder/old",
    "quantize a b --captions OLD --report OLD",
    "quantize a b --report NEW --json NEW",
])
def test_no_output_replaces_another_file_of_the_command(built_program, tmp_path, arguments):
    (tmp_path / "OLD").write_text("{}")
    (tmp_path / "link-to-OLD").symlink_to("OLD")
    (tmp_path / "link-to-NEW").symlink_to("NEW.png")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/old").write_text("{}")
    before = sorted(tmp_path.iterdir())
    done = subprocess.run([built_program("octet"), *arguments.split()], capture_output=True,
                          text=True, timeout=600, cwd=tmp_path)
    assert "belongs to what another argument names" in only_sentence(done, code=2)
    assert (tmp_path / "OLD").read_text() == (tmp_path / "folder/old").read_text() == "{}"
    assert sorted(tmp_path.iterdir()) == before


def test_former_outputs_may_be_written_again_among_inputs(built_program, tmp_path):
    (tmp_path / "caption.json").write_text("{}")
    for _ in range(2):
        done = subprocess.run([built_program("octet"), "devices", "--json", "report.json"],
                              cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0
        done = subprocess.run([built_program("octet"), "inspect", ".", "--json", "report.json"],
                              cwd=tmp_path, capture_output=True, text=True)
        assert "belongs to" not in only_sentence(done)  # a folder without a model


def test_outputs_that_nobody_keeps_may_be_the_same(octet, tmp_path):
    nowhere = ["--report", "/dev/null", "--json", "/dev/null"]
    sentence = only_sentence(octet("quantize", tmp_path / "none", tmp_path / "out", *nowhere))
    assert "none" in sentence


def options_with_names(octet, command):  # noqa: F811
    """Flags of a command whose values are files, names, lists or words."""
    page = octet(*command, "--help").stdout
    kinds = "FILE|FOLDER|MODEL|PREFIX|CHECKPOINT|SHAPES|CARDS|NAME|REPO|PATTERN|REVISION|RECIPE"
    words = r"\w\|\w|m,n,k"
    return re.findall(rf"^  (?:-\w, )?(--[\w-]+) [^ ]*(?:{kinds}|{words})", page, re.MULTILINE)


@pytest.mark.parametrize("arguments", [("inspect",), ("bench",)])
@pytest.mark.parametrize("letter", ["x", "ä"])
def test_a_long_argument_is_not_repeated_in_full(octet, arguments, letter):  # noqa: F811
    done = octet(*arguments, letter * 60_000)
    assert done.returncode in (1, 2) and done.stderr.count("\n") == 1
    assert len(done.stderr) < 10_000 and "\ufffd" not in done.stderr
    assert f"{letter} ... {letter}" in done.stderr


def test_an_empty_word_is_no_value_of_any_flag(octet):  # noqa: F811
    commands = [["generate"], ["caption", "check"], ["demo"], ["pull"], ["inspect"], ["quantize"],
                ["compare"], ["certify"], ["devices"], ["bench", "gemm"], ["bench", "linear"],
                ["bench", "step"], ["bench", "e2e"], ["tune"], ["map"], ["plan"], ["audit"],
                ["serve"]]
    seen = set()
    for command in commands:
        for flag in options_with_names(octet, command):
            sentence = only_sentence(octet(*command, flag, ""), code=2)
            assert "empty" in sentence or "''" in sentence, (command, flag, sentence)
            seen.add((command[0], flag))
    assert {("map", "--svg"), ("map", "--shapes"), ("bench", "--model"), ("bench", "--shape"),
            ("generate", "--preset"), ("compare", "--device")} <= seen


@pytest.mark.parametrize("command", [[], ["generate"], ["bench", "step"]], ids=" ".join)
def test_help_prints_what_the_flag_prints(octet, command):  # noqa: F811
    assert octet("help", *command).stdout == octet(*command, "--help").stdout
