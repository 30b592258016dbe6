"""Files of a workspace, and an edit of one as an agent writes it."""

SHAPES = """\
def area(width, height):
    return width * height


def edge(width, height):
    return 2 * (width + height)


print(area(1, 2), edge(3, 4))
"""
USES = """\
from shapes import area

A = 1
print(area(3, 4))
B = 2
C = 3
"""

SNIPPET = (
    "# ... existing code ...\ndef edge(width, height):\n    return width + height\n\n\n"
    "print(area(1, 2), edge(3, 4))\n"
)
EDGE = SHAPES.replace("2 * (width + height)", "width + height")
