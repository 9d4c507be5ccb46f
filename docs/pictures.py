"""Small copies of drawn figures for the gallery: `make figures`, then `python docs/pictures.py figures`."""

import sys
from pathlib import Path

from PIL import Image

WIDTH = 900
PICTURES = Path(__file__).parent / "papers" / "pictures"

if __name__ == "__main__":
    for source in sorted(Path(sys.argv[1]).glob("[0-9]*/*.png")):
        target = PICTURES / source.parent.name / f"{source.stem}.webp"
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(source) as picture:
            small = picture.convert("RGB")
            small.thumbnail((WIDTH, 2 * WIDTH))
            small.save(target, quality=72, method=6)
        print(target.relative_to(PICTURES), target.stat().st_size)
