"""ComfyUI's INT8 linears on Octet's kernels, and a node that says which of them ran.

Loading this folder as a custom node installs the backend; workflows stay as they are. Whatever goes
wrong here is one line in the log: ComfyUI starts, and runs its own kernels.
"""

from __future__ import annotations

import logging

_log = logging.getLogger("octet")


def _install() -> str:
    """What happened, in a sentence."""
    try:
        import octet.comfy

        return octet.comfy.install().message
    except Exception as error:  # no package, another ABI, a comfy-kitchen that is too old
        return f"Octet is not used: {type(error).__name__}: {error}"


STATE = _install()
_log.info(STATE)


class OctetReport:
    """Which kernel ran each INT8 linear, and which calls were left to ComfyUI and why."""

    CATEGORY = "utils/octet"
    DESCRIPTION = __doc__
    FUNCTION = "report"
    OUTPUT_NODE = True
    RETURN_NAMES = ("report",)
    RETURN_TYPES = ("STRING",)

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {
            "required": {"clear": ("BOOLEAN", {
                "default": False, "tooltip": "start counting again after this report"})},
            # Anything made by the linears in question, so that the report comes after it.
            "optional": {"after": ("*", {"tooltip": "connect what the report has to wait for"})},
            "hidden": {"node": "UNIQUE_ID"},
        }

    @classmethod
    def IS_CHANGED(cls, **_inputs) -> float:
        return float("nan")  # never equal to the last: a report is made each time

    def report(self, clear: bool = False, after: object = None, node: str | None = None) -> dict:
        try:
            import octet.comfy

            text = str(octet.comfy.report(clear=clear))
        except Exception as error:
            text = f"{STATE}\n{type(error).__name__}: {error}"
        _show(text, node)
        return {"ui": {"text": (text,)}, "result": (text,)}


def _show(text: str, node: str | None) -> None:
    """Shows it on the node itself, if this ComfyUI can."""
    try:
        from server import PromptServer

        PromptServer.instance.send_progress_text(text, node)
    except Exception:  # no ComfyUI, or one that cannot: "Preview as Text" shows the output
        _log.debug("the report is not shown on the node", exc_info=True)


NODE_CLASS_MAPPINGS = {"OctetReport": OctetReport}
NODE_DISPLAY_NAME_MAPPINGS = {"OctetReport": "Octet report"}
