"""Our backend's place in comfy-kitchen: reached by F.linear, declining, removed without a trace.

A few seconds, most of them for importing torch; torch.compile only traces.
"""

from __future__ import annotations

import copy
import sys

import octet
import pytest
from comfy_calls import assert_as_eager, backend, installed, kitchen, rows_of  # noqa: F401
from comfy_calls import torch, weight_of
from octet.comfy import kernels, registering

registry = kitchen.registry
FIELDS = ("_backends", "_capabilities", "_constraints", "_priority", "_disabled", "_unavailable")


def fields() -> dict:
    return {name: copy.copy(getattr(registry, name)) for name in FIELDS}


def quantized(n: int = 48, k: int = 64, **how):
    return kitchen.tensor.QuantizedTensor.from_float(
        rows_of(n, k, dtype=torch.float32, seed=3) * 0.1, "TensorWiseINT8Layout", **how)


def declined() -> dict:
    return {(row.function, row.parameter): count for row, count in backend.report().declined}


def served() -> int:
    return sum(count for _, count in backend.report().served)


# --- coming and going ---


def test_it_is_first_and_leaves_nothing():
    before = fields()
    assert not backend.is_installed()
    assert backend.install()
    assert backend.is_installed()
    assert registry._priority == ["octet", *before["_priority"]]
    during = fields()
    assert backend.install()  # once more changes nothing
    assert fields().keys() == during.keys()
    assert registry._priority == during["_priority"]
    registry.disable("octet")
    assert not backend.is_installed()
    status = backend.install()
    assert not status and "disabled" in status.message
    backend.uninstall()
    assert fields() == before
    backend.uninstall()
    assert fields() == before


def test_priorities_that_others_set_stay():
    before = list(registry._priority)
    try:
        registry.set_priority(["eager", "octet", "triton"])
        backend.install()
        assert registry._priority == ["eager", "octet", "triton"]
        registry.set_priority(["eager", "triton"])
        assert not backend.is_installed()
        backend.install()
        assert registry._priority == ["octet", "eager", "triton"]
        backend.uninstall()
        assert registry._priority == ["eager", "triton"]
    finally:
        backend.uninstall()
        registry.set_priority(before)


@pytest.mark.parametrize("value", ["off", "OFF", "0", "no", "false"])
def test_off_by_the_environment(monkeypatch, value):
    monkeypatch.setenv("OCTET_COMFY", value)
    before = fields()
    status = backend.install()
    assert not status
    assert "OCTET_COMFY" in status.message
    assert fields() == before
    assert "OCTET_COMFY is off" in str(backend.report())


def test_float32_by_the_environment(monkeypatch):
    monkeypatch.setenv("OCTET_COMFY", "float32")
    try:
        backend.install()
        from octet.comfy import backend as functions

        assert functions.quantize_in_float32
    finally:
        backend.uninstall()


def test_a_registry_of_ones_own():
    own = type(registry)()
    assert backend.install(own)
    assert backend.is_installed(own) and not backend.is_installed()
    backend.uninstall(own)
    fresh = type(registry)()
    assert {name: getattr(own, name) for name in FIELDS} == {
        name: getattr(fresh, name) for name in FIELDS}


@pytest.mark.parametrize("lacking", ["_priority", "_lock", "_backends"])
def test_a_registry_without_a_field_is_one_clear_error(lacking):
    own = type(registry)()
    vars(own).pop(lacking)
    for call in (backend.install, backend.is_installed, backend.uninstall):
        with pytest.raises(ImportError, match=f"registry without {lacking}; expected .* 0.2.40"):
            call(own)


def test_without_comfy_kitchen_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "comfy_kitchen", None)
    with pytest.raises(ImportError, match="comfy-kitchen.*not installed.*pip install"):
        backend.install()
    assert "not installed" in str(backend.report())


def test_an_old_comfy_kitchen_is_not_replaced_behind_comfyuis_back(monkeypatch):
    fields = registering.FunctionConstraints.__dataclass_fields__
    monkeypatch.setattr(registering.FunctionConstraints, "__dataclass_fields__",
                        {name: field for name, field in fields.items() if name != "call_rules"})
    with pytest.raises(ImportError, match="0.2.23 and newer can; update ComfyUI") as raised:
        backend.install(type(registry)())
    assert "-U" not in str(raised.value)


def test_it_says_which_devices_are_served(monkeypatch):
    none, some = "this build has no CUDA", "no int8 instructions"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    for reasons, installed, said in (
        ({}, True, "of comfy-kitchen on cuda:1 and cpu"),
        ({"cuda": none}, True, f"on cpu; linears on cuda:1 stay with comfy-kitchen: {none}"),
        ({"cpu": some}, True, f"on cuda:1; linears on cpu stay with comfy-kitchen: {some}"),
        ({"cuda": none, "cpu": some}, False, "Octet serves nothing: linears on cuda:1 stay"),
    ):
        monkeypatch.setattr(kernels, "why_not", lambda device, r=reasons: r.get(device.type))
        status = backend.install(type(registry)())
        assert bool(status) == installed and said in status.message
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(kernels, "why_not", lambda device: None)
    assert backend.install(type(registry)()).message.endswith("of comfy-kitchen on cpu")


# --- who is reached ---


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("how", [{}, {"per_channel": True},
                                 {"per_channel": True, "convrot": True, "convrot_groupsize": 64}])
def test_a_quantized_tensor_reaches_it(how):
    weight, bias = quantized(**how), rows_of(48)
    x = rows_of(2, 5, 64)
    assert_as_eager(lambda: torch.nn.functional.linear(x, weight, bias))
    assert served() == 1
    assert_as_eager(lambda: torch.mm(x[0], weight.t()))
    assert_as_eager(lambda: torch.addmm(bias, x[0], weight.t()))
    assert served() == 3 and not declined()


@pytest.mark.usefixtures("installed")
def test_fused_forms_of_a_quantized_tensor_reach_it():
    weight = quantized(64, 64, per_channel=True)
    x, residual, gate = rows_of(5, 128), rows_of(5, 64, seed=5), rows_of(64, seed=6)
    assert_as_eager(lambda: weight.linear_input_act(x, None, "swiglu", residual=residual,
                                                    residual_scale=gate))
    layout, norm, scale = weight.layout_cls, rows_of(64, seed=7), rows_of(64, seed=8)
    y = layout.fused_rms_modulated(x[:, :64], weight, None, norm, 1e-6, scale)
    assert y is not NotImplemented and y.shape == (5, 64)
    # comfy-kitchen first asked who would serve that: no call, and not counted as one.
    assert served() == 2 and not declined()


@pytest.mark.usefixtures("installed")
def test_without_comfy_kitchens_cuda_backend_it_is_still_there():
    registry.disable("cuda")
    try:
        torch.nn.functional.linear(rows_of(5, 64), quantized())
    finally:
        registry.enable("cuda")
    assert served() == 1


@pytest.mark.usefixtures("installed")
def test_compiled_it_is_one_node_with_the_same_bits():
    weight, bias = quantized(per_channel=True), rows_of(48)
    x = rows_of(5, 64)

    def work(x):
        return torch.nn.functional.linear(x, weight, bias) * 2

    compiled = torch.compile(work, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), work(x))
    assert served() == 2

    def direct(x):  # comfy-kitchen's function cannot be traced whole; parts of it must not be wrong
        return kitchen.int8_linear(x, weight._qdata, weight._params.scale) * 2

    assert torch.equal(torch.compile(direct, backend="aot_eager")(x), direct(x))


# --- what is declined ---

X, (CODES, SCALES) = rows_of(5, 64), weight_of(48, 64)
DECLINED = {
    "x": {"x": X.double()},
    "weight": {"weight": CODES.float()},
    "convrot_groupsize": {"convrot": True, "convrot_groupsize": 128},
    "input_act": {"input_act": "silu"},
    "out_dtype": {"out_dtype": torch.float64},
    "weight_scale": {"weight_scale": SCALES[:3]},
    "bias": {"bias": torch.zeros(3)},
    "residual": {"residual": X},
    "input_act_weight": {"input_act": "rms_norm"},
    "a_new_one": {"a_new_one": True},
}


def arguments(**changes) -> dict:
    return {"x": X, "weight": CODES, "weight_scale": SCALES, "bias": None,
            "out_dtype": torch.bfloat16, "convrot": False, "convrot_groupsize": 256,
            "input_act": None, "residual": None, "residual_scale": None} | changes


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("parameter", DECLINED)
def test_it_declines_with_a_reason(parameter):
    result = registry.validate_backend_for_call("octet", "int8_linear",
                                                arguments(**DECLINED[parameter]))
    assert not result.success
    assert result.failed_param == parameter
    assert declined() == {("int8_linear", parameter): 1}
    assert result.failure_reason in str(backend.report())


@pytest.mark.usefixtures("installed")
def test_an_input_whose_numbers_are_elsewhere_is_left_to_others():
    """QuantizedTensor says that it is bfloat16, and has int8 at its address."""
    weight, x = quantized(per_channel=True), quantized(5, per_channel=True)
    with kitchen.use_backend("eager"):
        expected = weight.linear_input_act(x)
    assert torch.equal(weight.linear_input_act(x), expected)
    assert served() == 0 and declined() == {("int8_linear", "x"): 1}
    for name in ("weight", "weight_scale", "bias"):
        tensor = torch.zeros(48, dtype=torch.float32) if name == "bias" else arguments()[name]
        other = tensor.as_subclass(type("Other", (torch.Tensor,), {}))
        result = registry.validate_backend_for_call("octet", "int8_linear",
                                                    arguments(**{name: other}))
        assert not result.success and result.failed_param == name


@pytest.mark.usefixtures("installed")
def test_parameters_of_modules_are_served():
    def frozen(tensor):
        return torch.nn.Parameter(tensor, requires_grad=False)

    kitchen.int8_linear(frozen(X), frozen(CODES), frozen(SCALES), frozen(rows_of(48)))
    assert served() == 1 and not declined()


@pytest.mark.usefixtures("installed")
def test_unknown_parameters_that_ask_for_nothing_are_no_obstacle():
    nothing = {"new_flag": False, "new_tensor": None, "new_number": 0, "new_name": ""}
    implementation = registry.get_implementation("int8_linear", kwargs=arguments(**nothing))
    y = implementation(**arguments(**nothing))
    assert torch.equal(y, kitchen.int8_linear(X, CODES, SCALES))
    with pytest.raises(TypeError, match="new_flag"):
        implementation(**arguments(new_flag=True))


@pytest.mark.usefixtures("installed")
def test_a_declined_call_lands_at_the_next_backend():
    x, (codes, scales) = rows_of(5, 4096), weight_of(48, 4096, rotation=4096)
    call = {"convrot": True, "convrot_groupsize": 4096}  # a group that only the portable one has
    y = kitchen.int8_linear(x, codes, scales, **call)
    with kitchen.use_backend("eager"):
        assert torch.equal(y, kitchen.int8_linear(x, codes, scales, **call))
    assert served() == 0 and declined() == {("int8_linear", "convrot_groupsize"): 1}


@pytest.mark.usefixtures("installed")
def test_memory_that_was_short_once_is_asked_for_again(monkeypatch):
    from octet.comfy import kernels

    cpu = torch.device("cpu")
    monkeypatch.setattr(kernels, "_reasons", {})
    with monkeypatch.context() as short:
        def open_none(index):
            raise octet.OutOfMemory("there is none")

        short.setattr(kernels, "engine", open_none)
        assert "too little memory" in kernels.why_not(cpu)
    assert "too little memory" not in (kernels.why_not(cpu) or "")


def test_errors_of_comfy_kitchen_stay_its_own():
    with pytest.raises(ValueError, match="unsupported input_act"):
        kitchen.int8_linear(X, CODES, SCALES, input_act="silu")
    with pytest.raises(ValueError, match="modulation_scale"):
        kitchen.int8_linear_modulated(X, torch.ones(3), CODES, SCALES)


@pytest.mark.usefixtures("installed")
def test_within_require_int8_a_declined_call_raises():
    with octet.require_int8():
        kitchen.int8_linear(X, CODES, SCALES)
        with pytest.raises(RuntimeError, match="int8_linear.*require_int8.*input_act"):
            kitchen.int8_linear(X, CODES, SCALES, input_act="silu")


@pytest.mark.usefixtures("installed")
def test_the_report_keeps_a_bounded_number_of_rows():
    from octet.comfy.tally import Tally

    tally = Tally(most=3)
    for i in range(10):
        tally.add(i % 5)
    rows, others = tally.take(clear=True)
    assert len(rows) == 3 and sum(count for _, count in rows) + others == 10
    assert tally.take(clear=False) == ([], 0)
    for m in (1, 2):
        kitchen.int8_linear(rows_of(m, 64), CODES, SCALES)
    kitchen.int8_linear(rows_of(0, 64), CODES, SCALES)  # nothing ran
    text = str(backend.report(clear=True))
    assert "2 calls ran here" in text and "48 x 64" in text and "bfloat16" in text
    assert "No call has run here yet" in str(backend.report())
