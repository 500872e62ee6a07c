"""Makes the modules of tools/demo_model and bench importable; imported only for that."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

for _folder in (ROOT / "tools" / "demo_model", ROOT / "bench"):
    if str(_folder) not in sys.path:
        sys.path.append(str(_folder))
