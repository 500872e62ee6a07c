#include "foreign_words.h"

namespace octet::cli {
namespace {

// Those of a command by its name come first: they are about what it lacks.
constexpr ForeignWords kForeignWords[] = {
    // --- the demo, which is one picture of the small model
    {"--size --width --height -W -H --resolution", "octet demo",
     "the demo has its model's size; octet generate --model MODEL takes --size"},
    {"-n --images --batch --batch-size --batch-count --num-images -b", "octet demo",
     "the demo is one picture; another --seed gives another, and octet generate takes -n"},
    {"--model -m --ckpt --checkpoint", "octet demo",
     "the demo has its own model; use octet generate --model MODEL"},
    {"--guidance --cfg --cfg-scale --guidance-scale", "octet demo",
     "guidance comes with the --preset; octet generate takes --guidance"},
    {"--negative --negative-prompt --neg", "octet demo",
     "say it in the --prompt: a moon, no stars"},
    {"--lora", "octet demo", "use octet generate --model MODEL --lora FILE"},
    {"--from --metadata --reproduce", "octet demo",
     "use octet generate --model MODEL --from PICTURE"},
    {"--list --words --objects", "octet demo",
     "what it can paint is in the sentence that octet demo --prompt x prints"},
    {"--preview", "octet demo", "use --show, or octet generate --preview FILE"},

    // --- the picture
    {"--width --height -W -H", "--size", "one flag gives both sides: --size WIDTHxHEIGHT"},
    {"--resolution --aspect-ratio --ar --ratio --aspect", "--size", "use --size WIDTHxHEIGHT"},
    {"--cfg --cfg-scale --guidance-scale --scale", "--guidance", "use --guidance"},
    {"--negative-prompt --neg --uncond-prompt", "--negative",
     "Ideogram 4 takes no negative prompt: describe what is to be seen; --negative is for models "
     "that take one"},
    {"--num-inference-steps --sampling-steps", "--preset", "use --steps, or a --preset"},
    {"--sampler --sampling-method --sampler-name --scheduler --schedule", "--preset",
     "the sampler is Euler's, and the schedule comes with the --preset"},
    {"--shift --flow-shift", "--preset", "the schedule comes with the --preset"},
    {"--batch --batch-size --batch-count --num-images --num-images-per-prompt --n-iter -b",
     "--images", "use -n for the number of images"},
    {"-i --init-img --init-image --image --img --ref-image -r --mask --control-image --control-net "
     "--controlnet",
     "--from",
     "pictures are made from captions alone, not from other pictures; the nearest is --from "
     "PICTURE, the same picture again from its metadata"},
    {"-i --init-img --init-image --image --img --ref-image --mask", "--caption",
     "pictures are made from captions alone, not from other pictures"},
    {"--strength --denoise --denoising-strength", "--from",
     "there is no img2img, whose strength this is; a LoRA's stands behind its file: --lora "
     "FILE:0.8"},
    {"--upscale-model --upscale-repeats --upscaler --hires --hires-fix --highres-fix", "--size",
     "there is no upscaler; ask for the pixels with --size, 4096x4096 at most"},
    {"--vae-tiling --vae-tile-size --tiled-vae --tile-vae", "--max-memory",
     "leave it out: a picture is decoded as a whole, without seams; a smaller --size, or --keep "
     "stream, takes less memory"},
    {"--vae-on-cpu --clip-on-cpu", "--keep", "use --keep PART=host or PART=stream"},
    {"--prompt-file --prompts --from-file --prompts-file", "--caption",
     "for many, use a .jsonl or .csv list as --caption, or a --prompt for each (docs/generate.md); "
     "--caption FILE --wrap-text makes one caption of a whole file"},
    {"--rng --noise-source", "--noise",
     "leave it out: the noise has the same bits everywhere; --noise FILE takes another program's"},
    {"--clip-skip --clip-l --clip-g --t5xxl", "--text-encoder",
     "leave it out: the text encoder is Qwen3-VL; --text-encoder FILE names one"},
    {"--edit --inpaint --reference", "--from",
     "pictures are made from captions alone, not from other pictures"},
    {"--tiling --seamless", "--preset", "leave it out: there are no pictures that tile"},
    {"--taesd --tae --preview-method --preview-path", "--preview", "use --preview FILE or --show"},
    {"-s", "--seed", "use --seed"},
    {"--metadata --reproduce --png-info", "--from", "use --from PICTURE"},

    // --- models and memory
    {"--offload-to-cpu --enable-model-cpu-offload --cpu-offload", "--keep",
     "use --keep host or --keep stream; docs/memory_and_speed.md says what fits"},
    {"--lowvram --medvram --novram --stream-layers", "--keep",
     "use --keep stream or --max-memory; docs/memory_and_speed.md says what fits"},
    {"--highvram --gpu-only --normalvram", "--keep",
     "leave it out, or use --keep device; docs/memory_and_speed.md says what fits"},
    {"--max-vram --reserve-vram", "--max-memory",
     "use --max-memory; docs/memory_and_speed.md says what fits"},
    {"--diffusion-fa --fa --flash-attention --xformers --opt-sdp-attention "
     "--use-pytorch-cross-attention --use-sage-attention",
     "--guidance", "leave it out: attention is already fused"},
    {"--diffusion-model --checkpoint --ckpt --ckpt-name --unet --pretrained-model -m", "--model",
     "use --model"},
    {"--uncond-diffusion-model", "--uncond", "use --uncond"},
    {"--llm --clip", "--text-encoder", "use --text-encoder"},
    {"--lora-strength --lora-scale --lora-weight --lora-alpha", "--lora",
     "a LoRA's strength stands behind its file: --lora FILE:0.8"},
    {"--lora-model-dir --lora-dir --lora-apply-mode", "--lora",
     "use --lora FILE[:strength], once for each"},
    {"--text-encoder-int8", "--text-encoder-linears", "use --text-encoder-linears int8"},
    {"--text-encoder-dtype --text-encoder-precision", "--text-encoder-linears",
     "use --text-encoder-linears float or int8"},
    {"--precision --weight-dtype", "--dtype",
     "use --dtype for activations and --linears for the large linears"},
    {"--fp16 --force-fp16 --half", "--dtype", "activations are bf16 or f32: --dtype"},
    {"--bf16", "--dtype", "use --dtype bf16"},
    {"--int8", "--linears",
     "leave it out: the large linears run in INT8 unless --linears says "
     "otherwise"},
    {"--type --quantize --quant", "--recipe", "use --recipe"},

    // --- files
    {"--output --output-path --save", "--out", "use -o"},
    {"--outdir --output-dir --output-directory", "--preview",
     "use -o, such as -o 'folder/{name}.png'"},
    {"--output --out -o", "--recipe", "give the output after the source, without a flag"},
    {"--format --output-format", "--quality", "name the format in -o: .png, .jpg or .webp"},
    {"--report", "--html", "use --html"},

    // --- the machine
    {"--gpu", "--device", "use --device cuda, or cuda:0 for the first"},
    {"--cuda", "--device", "use --device cuda"},
    {"--cpu --no-gpu", "--device", "use --device cpu"},
    {"--mps --rocm --hip --vulkan --directml --xpu", "--device",
     "there are CPUs and NVIDIA's GPUs: --device cpu or cuda"},
    {"-t --num-threads", "--threads", "use --threads"},
    {"--sizes", "--shape", "use --shape m,n,k"},
    {"--sizes", "--shapes", "use --shapes m,n,k"},

    // --- the Hub
    {"--token --hf-token", "--revision",
     "set HF_TOKEN; as a flag, it would show in every process list"},
    {"--branch", "--revision", "use --revision"},
    {"--local-dir", "--cache-dir", "use --cache-dir; it has the layout of the Hub's cache"},
    {"-f --force -r -rf", "octet rm", "use --yes"},

    // --- commands
    {"version -v -V", "generate", "use octet --version"},
    {"txt2img run t2i text2image imagine", "generate", "use octet generate"},
    {"img2img edit inpaint outpaint", "generate",
     "pictures are made from captions alone; use octet generate"},
    {"upscale", "generate", "there is no upscaler; octet generate --size asks for the pixels"},
    {"server start webui ui gui web api listen", "serve",
     "use octet serve, which has a page for the browser and an API for programs"},
    {"train finetune fine-tune dreambooth", "generate",
     "nothing is trained here; octet generate --lora FILE runs what others trained"},
    {"download", "pull", "use octet pull"},
    {"ls models ps --list", "list", "use octet list"},
    {"remove delete uninstall prune", "rm", "use octet rm"},
    {"login auth", "pull", "set HF_TOKEN, see docs/pull.md"},
    {"settings configure", "config", "use octet config"},
    {"convert", "quantize", "use octet quantize"},
    {"info show", "inspect", "octet inspect shows a checkpoint, octet devices this machine"},
    {"doctor", "devices", "use octet devices"},
    {"benchmark", "bench", "use octet bench"},
    {"profile record", "audit", "use octet audit --record -- COMMAND"},
};

}  // namespace

std::span<const ForeignWords> foreign_words() { return kForeignWords; }

}  // namespace octet::cli
