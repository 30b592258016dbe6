"""What an isolated process runs as ``redraft``."""

import sys

from lsp_server.commands.cli.main import main

sys.exit(main())
