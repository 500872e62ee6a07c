"""Records a PyTorch program that knows nothing of it: `octet audit --record -- COMMAND`.

The program puts this file as sitecustomize.py into a folder in front of PYTHONPATH, so that every
Python process of COMMAND imports it at its start. Without OCTET_RECORD_FILE it does nothing.

    OCTET_RECORD_FILE          trace.json or trace.json.gz; each process that ran a product writes
                               its own, with its number before the suffix: trace.1234.json.gz
    OCTET_RECORD_SKIP_SECONDS  of warm-up, from the first call of a module on; default 0. Programs
                               that compile need it: what the compiler tries out is recorded, too
    OCTET_RECORD_SECONDS       of recording; default 0, until the process ends
    OCTET_RECORD_START         "call" (default): at the first call of a module, so that loading and
                               quantizing of weights stay out of it; "import": with torch

Linears get their names: a range around each call. A trace needs an orderly end: none comes of a
process that is killed, crashes, or calls os._exit. Python ignores PYTHONPATH under -E and -I, and
this file under -S. The user's program must never fail for it: what goes wrong here is said in one
line of standard error, at the end.
"""

import os
import sys
import threading


def _chain():
    """Another sitecustomize, further down the path, is what would have been imported."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


class _Recorder:
    def __init__(self, file):
        import threading

        self.file, self.process = os.path.abspath(file), os.getpid()
        self.skip = self._seconds("OCTET_RECORD_SKIP_SECONDS")
        self.seconds = self._seconds("OCTET_RECORD_SECONDS")
        self.at_import = os.environ.get("OCTET_RECORD_START", "call") == "import"
        self.lock, self.local = threading.RLock(), threading.local()
        self.profiler, self.hooks = None, []
        self.first_call = self.end = None
        self.done = self.ours = False
        self.problem = None

    @staticmethod
    def _seconds(name):
        try:
            return max(0.0, float(os.environ.get(name) or 0))
        except ValueError:
            return 0.0

    def guarded(self, function, *arguments):
        """Nothing that fails here may reach the user's program."""
        try:
            return function(*arguments)
        except Exception as error:
            self.problem = self.problem or f"{type(error).__name__}: {error}".splitlines()[0]
            self.done = True
            return None

    # --- torch is imported -----------------------------------------------------------------------

    def watch(self):
        self.looking = threading.local()
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        """Of the import system: torch is found as ever, and followed by installed(). Programs ask
        whether there is a torch before they import it, so that this is called more than once."""
        if name != "torch" or getattr(self.looking, "now", False):
            return None
        from importlib.util import find_spec

        self.looking.now = True
        try:
            spec = find_spec(name)
        finally:
            self.looking.now = False
        loader = spec and spec.loader
        if loader is not None:
            execute = loader.exec_module

            def followed(module):
                del loader.exec_module  # the loader is as it was
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                execute(module)
                self.guarded(self.installed, module)

            loader.exec_module = followed
        return spec

    def installed(self, torch):
        import atexit
        import warnings
        import weakref

        self.torch, self.names = torch, weakref.WeakKeyDictionary()
        # The last of all handlers to be registered is the first to run: CUDA is still there.
        atexit.register(self.guarded, self.at_exit)
        module = torch.nn.modules.module
        self.hooks = [module.register_module_forward_pre_hook(self.before),
                      module.register_module_forward_hook(self.after, always_call=True)]
        # torch.compile warns of such hooks; these are no concern of the user.
        warnings.filterwarnings("ignore", message=".*global hooks on modules")
        for kind in (torch.profiler.profile, torch.autograd.profiler.profile):
            self.give_way(kind)
        if self.at_import:
            self.start()

    def give_way(self, kind):
        """Two profilers at a time are an error in the second: the user's own ends ours."""
        made = kind.__init__

        def __init__(other, *arguments, **named):
            if not self.ours and self.profiler is not None:
                self.problem = "the program started a profiler of its own, which ended this one"
                self.guarded(self.stop)
            made(other, *arguments, **named)

        kind.__init__ = __init__

    # --- modules are called ----------------------------------------------------------------------

    def before(self, module, _):
        # Under torch.compile this is traced: it must come to nothing there.
        if self.torch.compiler.is_compiling() or self.done or os.getpid() != self.process:
            return
        self.guarded(self.enter, module)

    def after(self, module, _, __):
        if self.torch.compiler.is_compiling():
            return
        self.guarded(self.leave, module)

    def enter(self, module):
        stack = self.local.__dict__.setdefault("stack", [])
        if not stack:
            self.check_time()
            self.local.root = module
        active = None
        if self.profiler is not None and self.is_linear(module):
            active = self.torch.profiler.record_function(self.name_of(module))
            active.__enter__()
        stack.append((module, active))

    def leave(self, module):
        stack = self.local.__dict__.get("stack")
        if not stack or stack[-1][0] is not module:
            return  # its call began before ours did
        _, active = stack.pop()
        if active is not None:
            active.__exit__(None, None, None)
        if not stack:
            self.local.root = None
            self.check_time()

    @staticmethod
    def is_linear(module):
        weight = getattr(module, "weight", None)
        return "Linear" in type(module).__name__ or getattr(weight, "ndim", 0) == 2

    def name_of(self, module):
        root = self.local.root
        names = self.names.get(root)
        if names is None:
            names = {id(part): name for name, part in root.named_modules()}
            self.names[root] = names
        outermost = type(root).__name__
        if module is root:
            return outermost
        return f"{outermost}.{names.get(id(module)) or type(module).__name__}"

    # --- the profiler ----------------------------------------------------------------------------

    def check_time(self):
        import time

        now = time.monotonic()
        with self.lock:
            if self.done:
                return
            if self.first_call is None:
                self.first_call = now
            if self.profiler is None:
                if now >= self.first_call + self.skip:
                    self.start()
                    self.end = now + self.seconds if self.seconds else None
            elif self.end is not None and now >= self.end:
                self.stop()

    def start(self):
        torch = self.torch
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        options = {"activities": activities, "record_shapes": True}
        try:  # else the thread alone that started it, and no other may stop it
            options["experimental_config"] = torch._C._profiler._ExperimentalConfig(
                profile_all_threads=True)
        except (AttributeError, TypeError):
            pass
        self.ours = True
        try:
            try:  # without it, newer versions warn that events of earlier cycles are dropped
                profiler = torch.profiler.profile(**options, acc_events=True)
            except TypeError:
                profiler = torch.profiler.profile(**options)
            profiler.start()
            self.profiler = profiler
        finally:
            self.ours = False

    def stop(self):
        with self.lock:
            profiler, self.profiler, self.done = self.profiler, None, True
            for hook in self.hooks:
                hook.remove()
            if profiler is None:
                return
            if self.torch.cuda.is_available() and self.torch.cuda.is_initialized():
                self.torch.cuda.synchronize()  # kernels that still run belong to it
            profiler.stop()
            if self.ran_a_product(profiler):
                self.write(profiler)

    @staticmethod
    def ran_a_product(profiler):
        """A helper process that only imported torch has nothing to tell."""
        try:
            events = profiler.profiler.kineto_results.events()
        except AttributeError:
            return True
        return any("mm" in event.name() or "linear" in event.name() for event in events)

    def write(self, profiler):
        """Whole, or not at all: under another name first."""
        folder, name = os.path.split(self.file)
        stem, suffix = name, ""
        for ending in (".json.gz", ".json"):
            if name.endswith(ending):
                stem, suffix = name[: -len(ending)], ending
                break
        name = f"{stem}.{self.process}{suffix or '.json'}"
        unfinished = os.path.join(folder, f".unfinished.{name}")
        profiler.export_chrome_trace(unfinished)
        os.replace(unfinished, os.path.join(folder, name))

    def at_exit(self):
        if os.getpid() != self.process:
            return
        if threading.current_thread() is threading.main_thread():
            # A second Ctrl-C would cost the trace that the first one asked for.
            import signal

            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.guarded(self.stop)
        if self.problem:
            sys.stderr.write(f"octet audit --record: {self.problem}\n")


def _record():
    file = os.environ.get("OCTET_RECORD_FILE")
    if not file:
        return
    # The profiler's own lines are no part of the user's output.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    _Recorder(file).watch()


try:
    _record()
except Exception as error:
    sys.stderr.write(f"octet audit --record: {error}\n")
_chain()
