"""``python -m lsp_server`` is ``redraft``."""

import sys

from lsp_server.cli import main

sys.exit(main())
