"""``python -m lsp_server`` is ``redraft``."""

import sys

from lsp_server.cli.main import main

sys.exit(main())
