"""Muon for matrices, Adam for the rest; weights in bf16 with float32 masters and averages.

Muon (Jordan et al. 2024) orthogonalises the momentum of each matrix; matrices of one shape are
stacked, so that the many small layers of the text tower cost a few batched products. Its updates
are scaled to the size of Adam's (Liu et al. 2025), so one learning rate serves both.
"""

import torch
from safetensors.torch import load_file, save_file


def _orthogonal(x):
    """Newton-Schulz iterations towards U V^T of each matrix [N, a, b]."""
    x = x.bfloat16()
    turned = x.shape[1] > x.shape[2]
    if turned:
        x = x.mT
    x = x / (x.float().norm(dim=(1, 2), keepdim=True) + 1e-7).bfloat16()
    for _ in range(5):
        a = x @ x.mT
        b = torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315)
        x = torch.baddbmm(x, b, x, beta=3.4445)
    return x.mT if turned else x


class Optimizer:
    def __init__(self, models, lr, decay=0.01, average=0.999):
        self.lr, self.decay, self.average, self.steps = lr, decay, average, 0
        named = [
            (f"{key}.{name}", parameter)
            for key, model in models.items()
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        ]
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.masters = [parameter.detach().float().clone() for parameter in self.parameters]
        self.averages = [master.clone() for master in self.masters]
        self.gradients = [torch.zeros_like(master) for master in self.masters]
        self.first = [torch.zeros_like(master) for master in self.masters]
        self.shapes, self.others = {}, []
        for i, (name, parameter) in enumerate(named):
            if parameter.ndim == 2 and "embed" not in name and min(parameter.shape) >= 16:
                self.shapes.setdefault(tuple(parameter.shape), []).append(i)
            else:
                self.others.append(i)
        self.second = {i: torch.zeros_like(self.masters[i]) for i in self.others}

    @torch.no_grad()
    def step(self, share, gradients):
        """`share` of the learning rate; the gradients are those of `parameters`, in order."""
        self.steps += 1
        lr = self.lr * share
        torch._foreach_copy_(self.gradients, gradients)
        gradients = self.gradients
        norm = torch.stack(torch._foreach_norm(gradients)).norm()
        torch._foreach_mul_(gradients, (1.0 / (norm + 1e-6)).clamp(max=1.0))
        for shape, group in self.shapes.items():
            first = [self.first[i] for i in group]
            here = [gradients[i] for i in group]
            torch._foreach_mul_(first, 0.95)
            torch._foreach_add_(first, here)
            looked_ahead = torch.stack(torch._foreach_add(here, first, alpha=0.95))
            update = _orthogonal(looked_ahead).float() * (0.2 * max(shape) ** 0.5)
            masters = [self.masters[i] for i in group]
            torch._foreach_mul_(masters, 1 - lr * self.decay)
            torch._foreach_add_(masters, list(update.unbind()), alpha=-lr)
        first = [self.first[i] for i in self.others]
        second = [self.second[i] for i in self.others]
        here = [gradients[i] for i in self.others]
        torch._foreach_lerp_(first, here, 0.1)
        torch._foreach_mul_(second, 0.98)
        torch._foreach_addcmul_(second, here, here, 0.02)
        scale = (1 - 0.98**self.steps) ** 0.5 / (1 - 0.9**self.steps)
        root = torch._foreach_sqrt(second)
        torch._foreach_add_(root, 1e-8)
        update = torch._foreach_div(first, root)
        torch._foreach_add_([self.masters[i] for i in self.others], update, alpha=-lr * scale)
        torch._foreach_copy_(self.parameters, self.masters)
        torch._foreach_lerp_(
            self.averages, self.masters, 1 - min(self.average, (1 + self.steps) / (10 + self.steps))
        )

    @torch.no_grad()
    def use(self, values):
        """Puts `masters` or `averages` into the networks."""
        torch._foreach_copy_(self.parameters, values)

    def save(self, folder):
        """Moments in bf16, by the names of their parameters: restarting without them costs a few
        hundred steps."""
        tensors = {"first." + name: value for name, value in zip(self.names, self.first)}
        tensors |= {"second." + self.names[i]: value for i, value in self.second.items()}
        save_file(
            {name: value.bfloat16().cpu() for name, value in tensors.items()},
            folder / "moments.safetensors",
        )

    def load(self, folder):
        """Moments and averages, as far as they are there."""
        for key in {name.split(".")[0] for name in self.names}:
            path = folder / f"{key}_average.safetensors"
            tensors = load_file(path) if path.exists() else {}
            for name, value in zip(self.names, self.averages):
                if name.startswith(key + ".") and name[len(key) + 1 :] in tensors:
                    value.copy_(tensors[name[len(key) + 1 :]])
        path = folder / "moments.safetensors"
        if not path.exists():
            return
        tensors = load_file(path)
        for name, value in zip(self.names, self.first):
            value.copy_(tensors["first." + name])
        for i, value in self.second.items():
            value.copy_(tensors["second." + self.names[i]])
        self.steps = 1000  # moments need no correction any more
